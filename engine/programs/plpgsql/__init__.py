"""PL/pgSQL: functions, procedures and DO blocks whose statements the server runs one after another."""
