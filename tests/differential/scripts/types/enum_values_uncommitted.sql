-- Values that ALTER TYPE adds are not used before the commit, of a type of the same transaction neither
begin; create type e3 as enum ('a'); select 'a'::e3; alter type e3 add value 'b'; select 'a'::e3; select 'b'::e3; rollback;
begin; create type e4 as enum ('a'); alter type e4 rename value 'a' to 'c'; select 'c'::e4; rollback;
create type e5 as enum ('a');
begin; alter type e5 add value 'z'; create table e5t (x e5 default 'z'); rollback;
begin; alter type e5 add value 'z'; select enum_range(null::e5); rollback;
begin; alter type e5 add value 'z'; savepoint s; select 'z'::e5; rollback to s; release s; commit;
begin; create type e6 as enum (); alter type e6 add value 'z'; select enum_first(null::e6); rollback;
begin; create type e7 as enum ('q'); alter type e7 rename to e8; alter type e8 add value 'z'; select 'z'::e8; rollback;
begin; create type e9 as enum ('q'); create domain d9 as e9; alter type e9 add value 'z'; select 'z'::d9; rollback;
