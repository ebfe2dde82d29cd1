-- a word of 2,047 bytes is one; until 15.18 a tsvector took 2,046
-- also: local
-- as of: 15.20
select length(repeat('x', 2047)::tsvector);
