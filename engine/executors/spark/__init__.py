"""The Spark executor.

properties.py  Spark's properties and masters: what is set, added, refused
files.py       where Spark finds parts: here, under the same path elsewhere, in an object store
gateway.py     the JVM: command line, life and death
runtime.py     when it starts, the session in it; restarts.py: when it starts again after a crash
relations.py   a snapshot's parts and hot rows as Spark relations
slots.py       who may run jobs, who waits
running.py     one query: its jobs, and its batches in order
stream.py      a small result as Arrow batches, pulled from the JVM
spool.py       a large one as files that tasks write
tasks.py       Python functions on executors, one call per item; workers.py: what their processes need
part_writer.py a query whose rows become parts of a table; part_worker.py is what Python workers do of it
errors.py      Spark's errors as SQLSTATEs
executor.py    the executor interface over all of these
"""
