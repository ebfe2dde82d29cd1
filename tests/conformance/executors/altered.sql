-- After ADD COLUMN and DROP COLUMN: old rows show the default, whichever store they lie in.
select * from altered order by id
select id, added from altered where added = 42 order by id
select count(late), count(*), sum(added), max(kept) from altered
select late, count(*) from altered group by late
select * from altered where id = 2
select * from altered where late is null and id > 3 order by id
select a.id, b.late from altered a left join altered b on a.id = b.id and b.added = 1 order by 1
