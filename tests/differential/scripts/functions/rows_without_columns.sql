-- Functions whose rows are of a type without columns, in FROM.
create view zv as select from generate_series(1,5) union select from generate_series(1,3);
create function zr() returns setof zv language sql as $$select from generate_series(1,5) union select from generate_series(1,3)$$;
select count(*) from zr();
create function zr2() returns setof zv language sql as $$select from generate_series(1,5)$$;
select count(*) from zr2();
create function zr3() returns setof zv language plpgsql as $$begin return query select from generate_series(1,5) union all select from generate_series(1,3); end$$;
select count(*) from zr3();
select zr3();
select * from zr();
create table zt ();
insert into zt select from generate_series(1,3);
create function zr4() returns setof zt language sql as $$select zt from zt$$;
select count(*) from zr4();
create function zr5() returns setof zt language sql as $$select * from zt$$;
select count(*) from zr5();
select zr5();
