-- functions about a standby, where there is none
-- also: local
select pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(), pg_last_xact_replay_timestamp(), pg_current_logfile(), pg_current_logfile('csvlog');
select pg_is_wal_replay_paused();
select pg_get_wal_replay_pause_state();
select pg_wal_replay_pause();
select pg_wal_replay_resume();
select case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end;
