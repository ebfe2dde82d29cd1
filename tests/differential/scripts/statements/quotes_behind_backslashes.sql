-- backslash_quote: where a quote may be written behind a backslash
select E'a\'b', e'\\', 'a\', E'\\\'x';
set backslash_quote = off;
show backslash_quote;
select E'a\'b';
select 'a' || E'a\\''b', e'x\'y';
select 'a\', E'\\', U&'\0041\', b'1' /* E'\' */ -- E'\'
, "e'\'" from (select 1 as "e'\'") x;
select E'a' 'b\'c', 1;
select E'a'
 'b\'c';
set standard_conforming_strings = off;
set escape_string_warning = off;
select 'a\'b';
select 'a\\', 'b''c';
prepare q as select E'\'';
set backslash_quote = safe_encoding;
select 'a\'b';
set standard_conforming_strings = on;
set client_encoding = 'SJIS';
select E'a\'b';
set backslash_quote = on;
select E'a\'b';
set backslash_quote = sometimes;
reset client_encoding;
set backslash_quote = off;
do $$ declare t text; begin execute 'select E''a\''''' into t; end $$;
