-- a view that groups by a primary key and shows other columns depends on that key
-- also: local
create table art (id int primary key, kw text, title text unique, body text);
create table cat (art int, cat int, changed date, primary key (art, cat));
create view v1 as select id, kw, title from art group by id;
create view v2 as select a.id, a.kw, c.cat, c.changed from art a join cat c on a.id = c.art group by a.id, c.cat, c.art;
create view v3 as select id, kw from art group by id union select id, kw from art group by id;
create view v4 as select * from art where title in (select title from art group by id);
create view v5 as select id from art group by id;
alter table art drop constraint art_pkey;
alter table art drop constraint art_pkey restrict;
alter table cat drop constraint cat_pkey;
alter table art drop constraint art_title_key;
drop view v2;
alter table cat drop constraint cat_pkey;
drop view v3, v4;
alter table art drop constraint art_pkey;
alter table art drop constraint art_pkey cascade;
select * from v1;
select * from v5;
create view v6 as select id, kw from art group by id;
drop table art cascade;
drop table cat;
