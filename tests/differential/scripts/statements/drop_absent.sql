-- DROP of kinds of objects that nobody can create here: there are none, but those of the system
-- also: local
create table tt1(a int); create view vv1 as select 1 a;
drop language sql; drop access method btree; drop collation "C"; drop collation nope; drop collation s.x;
drop operator + (int, int); drop operator if exists @# (none, int); drop operator - (none, int); drop operator @@@ (none, int); drop operator @@@ (int, none);
drop cast (int as bigint); drop cast (int as text);
drop rule "_RETURN" on vv1; drop trigger x on vv1; drop policy p on tt1; drop policy if exists p on tt1; drop policy if exists p on nope; drop policy p on nope; drop policy p on s.nope;
drop aggregate sum(int); drop aggregate lower(text); drop aggregate if exists nope(int, text[]), s.foo(int); drop aggregate foo(*); drop aggregate if exists foo(varchar(3)); drop aggregate s.foo(int);
drop event trigger e; drop event trigger if exists e, f; drop publication p; drop statistics st; drop statistics if exists st; drop statistics s.st; drop foreign table ft; drop foreign table tt1; drop foreign table if exists ft; drop foreign table s.t;
drop server s; drop foreign data wrapper w; drop trigger if exists x on tt1; drop operator class x.y using btree; drop operator class y using zz; drop collation if exists nope, s.c; drop cast (nope as int); drop cast (s.nope as int); drop aggregate count(*);
drop trigger x on "TT1"; drop rule x on tt1; drop rule if exists x on tt1; drop statistics if exists s.st; drop text search template if exists s.st; drop text search template st; drop conversion s.st; drop trigger x on s.t; drop operator s.@@@ (int,int); drop operator if exists @@@ (int, text); drop cast if exists (int as text); drop index nope; drop foreign table if exists tt1;
drop access method if exists zz; drop operator family if exists s.y using btree; drop aggregate foo(int), bar(int); drop text search configuration if exists nope; drop trigger if exists a on tt1 cascade;
drop cast (int as s.nope);
drop operator if exists s.@@@ (int, nope), s.@@@ (int, int);
drop view vv1;
drop table tt1;
create schema absent;
drop table absent.zz; drop table if exists absent.zz; drop view absent.zz; drop view if exists absent.zz; drop index absent.zz; drop index if exists absent.zz; drop sequence absent.zz; drop sequence if exists absent.zz; drop materialized view absent.zz; drop materialized view if exists absent.zz; drop foreign table absent.zz; drop foreign table if exists absent.zz;
drop schema absent;
