-- ranks and headlines
-- also: local
set default_text_search_config = 'english';
select ts_rank(' a:1 s:2C d g'::tsvector, 'a | s'), ts_rank(' a:1 sa:2C d g', 'a | s'), ts_rank(' a:1 sa:2C d g', 'a | s:*'), ts_rank(' a:1 sa:2C d g', 'a | sa:*'), ts_rank(' a:1 s:2B d g', 'a | s'), ts_rank(' a:1 s:2 d g', 'a | s'), ts_rank(' a:1 s:2C d g', 'a & s'), ts_rank(' a:1 s:2B d g', 'a & s'), ts_rank(' a:1 s:2 d g', 'a & s');
select ts_rank_cd(' a:1 s:2C d g'::tsvector, 'a | s'), ts_rank_cd(' a:1 sa:2C d g', 'a | s:*'), ts_rank_cd(' a:1 sa:3C sab:2c d g', 'a | sa:*'), ts_rank_cd(' a:1 s:2B d g', 'a & s'), ts_rank_cd(' a:1 sa:2A sb:2D g', 'a <-> s:*'), ts_rank_cd(' a:1 sa:2A sb:2D g', 'a <-> s:* <-> sa:A'), ts_rank_cd(' a:1 sb:2A sa:2D g', 'a <-> s:*A'), ts_rank_cd('a b', 'a & b'), ts_rank_cd('', 'a'), ts_rank_cd('a:1', '');
select n, ts_rank(v, q, n), ts_rank_cd(v, q, n) from (select to_tsvector('english', 'An ancient mariner stops one of three, the wedding guests; by thy long grey beard and glittering eye the mariner holds the guest') v, to_tsquery('mariner & guest') q) t, generate_series(0, 63) n order by n;
select ts_rank('{0.1, 0.2, 0.3, 0.9}', to_tsvector('a fat cat'), to_tsquery('cat | fat')), ts_rank_cd('{1, 0.5, 0.2, 0.1}', 'a:1A b:2 a:5B', 'a & b'), ts_rank('{-1,0.2,0.4,1}', 'a:1'::tsvector, 'a'::tsquery, 2), ts_rank(array[1,1,1,1,9]::float4[], 'a', 'a'::tsquery);
select ts_rank(array[0.1,0.2]::float4[], 'a', 'a'::tsquery);
select ts_rank(array[null,0.1,0.2,0.3]::float4[], 'a', 'a'::tsquery);
select ts_rank('{{1,1,1,1}}'::float4[], 'a', 'a'::tsquery);
select ts_rank('{1,1,1,2}'::float4[], 'a', 'a'::tsquery);
create table sea (id int primary key, t text);
insert into sea values (1, 'Day after day, day after day,
  We stuck, nor breath nor motion,
As idle as a painted Ship
  Upon a painted Ocean.
Water, water, every where
  And all the boards did shrink;
Water, water, every where,
  Nor any drop to drink.
S. T. Coleridge (1772-1834)'), (2, '<html><!-- some comment --><body>Sea view wow <u>foo bar</u> <i>qq</i> <a href="http://www.google.com/foo.bar.html" target="_blank">YES &nbsp</a> ff-bg <script>document.write(15);</script></body></html>'), (3, 'The most common type of search is to find all documents containing given query terms and return them in order of their similarity to the query. Notions of query and similarity are very flexible and depend on the specific application. The simplest search considers query as a set of words and similarity as the frequency of query words in the document.'), (4, ''), (5, 'foo bar baz http://x.com/foo well-known 1 2 3 foo');
select id, ts_headline('english', t, to_tsquery('english', 'paint & water | foo | query')) from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'painted <-> ship | similarity & query | bar <-> baz')) from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'day & drink'), 'MaxWords=10, MinWords=5') from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'water | search | foo'), 'MaxFragments=2, MaxWords=5, MinWords=2, FragmentDelimiter=" // "') from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'ocean & day | sea & foo | similar & document'), 'MaxFragments=100, MaxWords=8, MinWords=3, StartSel=<<, StopSel=>>') from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'water | sea | query | foo'), 'HighlightAll=true, StartSel=*, StopSel=*') from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', 'nosuchword'), 'MinWords=3, MaxWords=6') from sea order by id;
select id, ts_headline(t, 'quer:* | wat:*', 'ShortWord=0, MaxWords=7, MinWords=1') from sea order by id;
select id, ts_headline('english', t, to_tsquery('english', '!water & day'), 'MaxWords=7, MinWords=3') from sea order by id;
select ts_headline('english', 'Lorem ipsum urna.  Nullam nullam ullamcorper urna.', to_tsquery('english', 'Lorem') && phraseto_tsquery('english', 'ullamcorper urna'), 'MaxWords=100, MinWords=1'), ts_headline('english', 'foo bar', to_tsquery('english', '')), ts_headline('', ''::tsquery), ts_headline('simple', '1 2 3 1 3', '1 <-> 3', 'MaxWords=2, MinWords=1'), ts_headline('simple', '1 2 3 1 3', '1 & 3', 'MaxWords=4, MinWords=1'), ts_headline('simple', '1 2 3 1 3', '1 <-> 3', 'MaxWords=4, MinWords=1');
select ts_headline('{"a": "aaa bbb", "b": {"c": "ccc ddd fff", "c1": "ccc1 ddd1"}, "d": ["ggg hhh", 1, null, true]}'::jsonb, 'bbb & ddd | hhh'::tsquery, 'StartSel = <, StopSel = >'), ts_headline('english', '{"a": "aaa bbb", "d": ["ggg hhh", 1.0]}'::json, 'bbb | hhh'::tsquery);
select ts_headline('a', 'a', 'MaxWords=3, MinWords=5');
select ts_headline('a', 'a', 'MaxWords=x');
select ts_headline('a', 'a', 'Nothing=3');
select ts_headline('a', 'a', 'MinWords=0');
select ts_headline('a', 'a', 'ShortWord=-1');
select ts_headline('a', 'a', 'MaxFragments=-1');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'MaxWords=5 MinWords=3');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'MaxWords="5", "MinWords" = 3');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=,StopSel=x');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=E''a''''b\\c\d'' StopSel="a""b"');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=a"b,StopSel=05');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=1.50,StopSel=TRUE');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'maxwords=+05,MINWORDS= 3 ,,');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', '=3');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel=''x''y');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'StartSel="abc');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'MaxWords');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'MaxWords=9999999999');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'MaxWords=5.0');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', 'Start 	= 3');
select ts_headline('english', 'a fat cat sat on the mat and ate the fat rat', 'rat', repeat('HighlightAll=1 ', 3));
