-- rows as arguments of EXECUTE; CREATE TABLE IF NOT EXISTS looks at nothing where the name is taken
create type rc as (a int, b text);
create table rr (a int, c rc);
prepare r1(rc) as select $1, ($1).b; execute r1(row(1, 'x')); execute r1(null); execute r1('(2,y)'); execute r1((1, 'x', 2)); execute r1(row(1));
prepare r2 as insert into rr values (1, $1) returning *; execute r2(row('7', null)); execute r2(row(1, row(2)));
prepare r3(rr) as select ($1).c.b; execute r3(row(1, row(2, 'in'))); 
prepare r4(rc[]) as select $1[2]; execute r4(array[row(1, 'a'), row(2, 'b')]::rc[]);
create domain rd as rc check ((value).a > 0); prepare r5(rd) as select $1; execute r5(row(1, 'x')); execute r5(row(0, 'x'));
create table if not exists rr (a nosuch, check (nosuch()), like nosuch); create temp table if not exists rr (a nosuch); create table if not exists rr partition of nosuch for values in (1); create table if not exists rr of nosuch;
create table if not exists rr (a int references nosuch) partition by list (zz);
