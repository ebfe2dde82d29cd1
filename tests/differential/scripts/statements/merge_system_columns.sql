-- MERGE names no system columns in WHEN; patterns of like_regex are compiled when a path is read
create table mt8 (a int, b text); insert into mt8 values (1, 'x');
merge into mt8 using (values (1)) v(x) on mt8.a = v.x when matched and mt8.xmin is null then delete;
merge into mt8 using (values (1)) v(x) on mt8.a = v.x when matched and mt8.ctid is null then delete;
merge into mt8 using mt8 v on mt8.a = v.a when not matched and v.ctid is null then do nothing;
merge into mt8 using mt8 v on mt8.a = v.a when matched and v.tableoid is null then do nothing;
merge into mt8 using mt8 v on mt8.a = v.a when matched and (select v.ctid is null) then do nothing;
merge into mt8 using mt8 v on mt8.a = v.a when matched and v is null then do nothing;
select '$.a like_regex "("'::jsonpath;
select '$.a like_regex "(" flag "q"'::jsonpath;
select '$.a like_regex "a{2,1}"'::jsonpath;
select '$.a like_regex "[z-a]"'::jsonpath;
select '$ ? (@ like_regex "(")'::jsonpath;
select jsonb_path_query('"a("', '$ ? (@ like_regex "(" flag "q")');
create table jpt (p jsonpath); insert into jpt values ('$ like_regex "["'), ('$');
insert into jpt values ('$ like_regex "[a]"');
select * from jpt;
