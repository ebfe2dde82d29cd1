"""Work over many rows: files on the server, and what reads and writes them; rows that executors write as parts."""
