-- texts to lexemes: the default parser, dictionaries, to_tsvector and the functions that make queries
select * from ts_token_type('default') order by tokid;
select * from ts_parse('default', '345 qwe@efd.r '' http://www.com/ http://aew.werc.ewr/?ad=qwe&dw 1aew.werc.ewr/?ad=qwe&dw 2aew.werc.ewr http://3aew.werc.ewr/?ad=qwe&dw http://4aew.werc.ewr http://5aew.werc.ewr:8100/?  ad=qwe&dw 6aew.werc.ewr:8100/?ad=qwe&dw 7aew.werc.ewr:8100/?ad=qwe&dw=%20%32 +4.0e-10 qwe qwe qwqwe 234.435 455 5.005 teodor@stack.net teodor@123-stack.net 123_teodor@stack.net 123-teodor@stack.net qwe-wer asdf <fr>qwer jf sdjk<we hjwer <werrwe> ewr1> ewri2 <a href="qwe<qwe>">
/usr/local/fff /awdf/dwqe/4325 rewt/ewr wefjn /wqe-324/ewr gist.h gist.h.c gist.c. readline 4.2 4.2. 4.2, readline-4.2 readline-4.2. 234
<i <b> wow  < jqw <> qwerty');
select * from ts_parse('default', 'a-b-c x1-y2 é-tude naïve-Ünicode 1-a -5 +3.4 1.2.3 <script>var x</script> &amp x_y foo.bar/baz ~/x ../up v1.2');
select * from ts_parse('nosuch', 'a');
select * from ts_debug('english', 'The Running-shoes of 42 <b>foxes</b> at example.com/a.html and me@x.org');
select * from ts_debug('russian', 'Съешь же ещё этих мягких rolls');
select ts_lexize('english_stem', 'skies'), ts_lexize('english_stem', 'identity'), ts_lexize('english_stem', 'the'), ts_lexize('simple', 'The'), ts_lexize('german_stem', 'Häuser'), ts_lexize('french_stem', 'mangeaient');
select ts_lexize('nosuch', 'a');
set default_text_search_config = 'pg_catalog.english';
select get_current_ts_config(), 'english'::regconfig, 'pg_catalog.french'::regconfig::text, 'english_stem'::regdictionary, '{simple,english}'::regconfig[];
select 'nosuch'::regconfig;
select 'nosuch'::regdictionary;
select to_tsvector('nosuch', 'a');
set default_text_search_config = 'nosuch';
select to_tsvector('The quick brown foxes jumped over the lazy dogs, dogs!'), to_tsvector('simple', 'The Quick'), to_tsvector('german', 'Die Häuser und die Gärten'), to_tsvector('finnish', 'taloissa'), to_tsvector('turkish', 'kitapların'), to_tsvector('');
select to_tsvector('english', null), length(to_tsvector('english', repeat('word a b ', 1000)));
select to_tsquery('english', 'The & Fat & Rats'), to_tsquery('Fat | Rats:AB'), to_tsquery('supern:*A & star:A*B'), to_tsquery('''supernova star'' & !crab'), to_tsquery('simple', 'The & a'), to_tsquery('of');
select to_tsquery('english', 'fat <-> the <-> rats'), to_tsquery('english', '(1 <-> the) <-> 2'), to_tsquery('english', 'a <-> b <3> the <-> c'), to_tsquery('english', 'the | (a & b)'), to_tsquery('english', '!the & fox'), to_tsquery('english', 'well-known & http://x.com/y');
select to_tsquery('a b');
select to_tsquery('a &');
select plainto_tsquery('english', 'The Fat & Rats:C'), plainto_tsquery('the'), plainto_tsquery(''), plainto_tsquery('well-known url x.com/a'), phraseto_tsquery('english', 'cats of the rats'), phraseto_tsquery('the cat is on the mat now'), phraseto_tsquery('');
select websearch_to_tsquery('english', 'The fat rats'), websearch_to_tsquery('"supernovae stars" -crab'), websearch_to_tsquery('"sad cat" or "fat rat"'), websearch_to_tsquery('signal -"segmentation fault"'), websearch_to_tsquery('""" )( dummy \\ query <->'), websearch_to_tsquery('or'), websearch_to_tsquery('a or'), websearch_to_tsquery('fat or rat orc'), websearch_to_tsquery('-'), websearch_to_tsquery('');
select websearch_to_tsquery('simple', 'fat or(rat'), websearch_to_tsquery('simple', 'abc orange'), websearch_to_tsquery('simple', 'abc OR1234'), websearch_to_tsquery('simple', 'abc or-abc'), websearch_to_tsquery('simple', 'abc or!def'), websearch_to_tsquery('simple', 'abc : def'), websearch_to_tsquery('simple', 'fat:A : cat:B'), websearch_to_tsquery('simple', '"fat cat" eaten by -"the dog"'), websearch_to_tsquery('english', '"A the" b'), websearch_to_tsquery('simple', 'a\b ''c''');
select to_tsvector('{"a": "aaa bbb ddd ccc", "b": ["eee fff ggg"], "c": {"d": "hhh iii"}}'::json), to_tsvector('english', '{"a": "aaa in bbb ddd ccc", "b": ["the eee fff ggg"], "c": {"d": "hhh. iii"}}'::jsonb), to_tsvector('""'::jsonb), to_tsvector('{}'::json), to_tsvector('[]'::jsonb), to_tsvector('null'::jsonb);
select jsonb_to_tsvector('english', '{"a": "aaa in bbb", "b": 123, "c": 456, "d": true, "f": false, "g": null}', '"all"'), jsonb_to_tsvector('{"a": "b c", "n": 1.50}', '["key", "numeric"]'), json_to_tsvector('english', '{"a": "aaa", "b": 123, "d": true}', '["string", "boolean"]'), json_to_tsvector('simple', '{"a": "x", "a": "y"}', '["string"]');
select jsonb_to_tsvector('english', '{"a": "b"}', '{}');
select jsonb_to_tsvector('english', '{"a": "b"}', '["x"]');
select jsonb_to_tsvector('english', '{"a": "b"}', '[1]');
select 'The dogs ran'::text @@ 'dog' as a, 'The dogs ran'::text @@ to_tsquery('dog & run') as b, to_tsvector('fat cats') @@ 'cat'::tsquery as c;
