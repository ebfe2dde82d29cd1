-- SET clauses of functions whose bodies set the same: what is local ends with the function, a plain SET stays, a rollback undoes both
create function f_local_config() returns text language plpgsql set work_mem = '1MB'
    as $$ begin perform set_config('work_mem', '2MB', true); return current_setting('work_mem'); end $$;
create function f_config() returns text language plpgsql set work_mem = '1MB'
    as $$ begin perform set_config('work_mem', '2MB', false); return current_setting('work_mem'); end $$;
create function f_local() returns text language plpgsql set work_mem = '1MB'
    as $$ begin set local work_mem = '2MB'; return current_setting('work_mem'); end $$;
create function f_plain() returns text language plpgsql set work_mem = '1MB'
    as $$ begin set work_mem = '2MB'; return current_setting('work_mem'); end $$;
create function f_reset() returns text language plpgsql set work_mem = '1MB'
    as $$ begin reset work_mem; return current_setting('work_mem'); end $$;
create function f_plain_local() returns text language plpgsql set work_mem = '1MB'
    as $$ begin set work_mem = '2MB'; set local work_mem = '3MB'; return current_setting('work_mem'); end $$;
create function f_fails() returns text language plpgsql set work_mem = '1MB'
    as $$ begin set work_mem = '2MB'; raise exception 'no'; end $$;
create function f_caught() returns text language plpgsql set work_mem = '1MB'
    as $$ begin begin set local work_mem = '2MB'; raise exception 'no'; exception when others then null; end; return current_setting('work_mem'); end $$;
create function f_around() returns text language plpgsql set work_mem = '3MB'
    as $$ declare l text := f_local(); begin return l || current_setting('work_mem'); end $$;
create function f_sql() returns text language sql set work_mem = '1MB' as $$ select set_config('work_mem', '2MB', true) $$;
create function f_other() returns text language plpgsql set work_mem = '1MB'
    as $$ begin set local application_name = 'within'; return current_setting('work_mem'); end $$;
create procedure f_all(what text) language plpgsql as $$
declare
    name text;
begin
    foreach name in array array['f_local_config', 'f_config', 'f_local', 'f_plain', 'f_reset', 'f_plain_local', 'f_fails', 'f_caught', 'f_around', 'f_sql', 'f_other'] loop
        set work_mem = '7MB';
        begin
            execute format('select %I()', name) into what;
            raise notice '% gives %, then %', name, what, current_setting('work_mem');
        exception when raise_exception then
            raise notice '% fails, then %', name, current_setting('work_mem');
        end;
    end loop;
end $$;
call f_all('');
show work_mem;
reset work_mem;
select f_local_config();
show work_mem;
select f_config();
show work_mem;
reset work_mem;
select f_local();
show work_mem;
select f_plain();
show work_mem;
reset work_mem;
select f_reset();
show work_mem;
select f_plain_local();
show work_mem;
reset work_mem;
select f_fails();
show work_mem;
select f_caught();
show work_mem;
select f_around();
show work_mem;
select f_sql();
show work_mem;
select f_other();
show work_mem;
show application_name;
begin;
set local work_mem = '9MB';
select f_local();
show work_mem;
select f_plain();
show work_mem;
commit;
show work_mem;
reset work_mem;
set work_mem = '8MB';
begin;
savepoint s;
select f_plain();
show work_mem;
rollback to s;
show work_mem;
select f_local();
commit;
show work_mem;
begin;
select f_plain();
rollback;
show work_mem;
reset work_mem;
