-- settings that dumps and clients of former releases set: one value each, and in no list
show default_with_oids;
set default_with_oids = false;
set default_with_oids = on;
set default_with_oids = maybe;
select set_config('default_with_oids', 'true', false);
reset default_with_oids;
set ssl_renegotiation_limit = 0;
set ssl_renegotiation_limit = 1;
show ssl_renegotiation_limit;
select name from pg_settings where name in ('default_with_oids', 'ssl_renegotiation_limit');
