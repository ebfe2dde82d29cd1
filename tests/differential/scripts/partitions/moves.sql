-- Rows that an UPDATE moves to another partition: which triggers fire, in which order, and what REFERENCING shows them.
-- also: local
CREATE TABLE t (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
CREATE TABLE t2 (b text, x int, a int); alter table t2 drop column x; 
ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (10) TO (20);
CREATE FUNCTION ins() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % new %', TG_NAME, TG_OP, (SELECT array_agg(n order by a) FROM n); RETURN NULL; END $$;
CREATE FUNCTION del() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % old %', TG_NAME, TG_OP, (SELECT array_agg(n order by a) FROM o n); RETURN NULL; END $$;
CREATE FUNCTION upd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % old % new %', TG_NAME, TG_OP, (SELECT array_agg(n order by a) FROM o n), (SELECT array_agg(n order by a) FROM n); RETURN NULL; END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % % % % % -> %', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_TABLE_NAME, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP<>'INSERT' THEN OLD.a END, CASE WHEN TG_LEVEL = 'ROW' THEN CASE TG_OP WHEN 'DELETE' THEN OLD.a ELSE NEW.a END END;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER ti AFTER INSERT ON t REFERENCING NEW TABLE AS n EXECUTE FUNCTION ins();
CREATE TRIGGER td AFTER DELETE ON t REFERENCING OLD TABLE AS o EXECUTE FUNCTION del();
CREATE TRIGGER tu AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS n EXECUTE FUNCTION upd();
CREATE TRIGGER r_before BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER r_after AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO t VALUES (1,'one'),(2,'two'),(11,'eleven');
UPDATE t SET a = (a + 10) % 20;
UPDATE t SET a = a + 1 WHERE a = 1;
UPDATE t SET a = a - 5 WHERE a IN (11, 12) RETURNING *, tableoid::regclass;
INSERT INTO t VALUES (3, 'x'), (13, 'y');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.b = 'two' THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER a_keep BEFORE DELETE ON t1 FOR EACH ROW EXECUTE FUNCTION keep();
select tableoid::regclass, * from t order by a;
UPDATE t SET a = a + 10 WHERE a < 10;
select tableoid::regclass, * from t order by a;
CREATE FUNCTION nope() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER a_nope BEFORE INSERT ON t1 FOR EACH ROW EXECUTE FUNCTION nope();
UPDATE t SET a = a - 10 WHERE a >= 10;
select tableoid::regclass, * from t order by a;
CREATE TRIGGER p1 AFTER UPDATE ON t2 REFERENCING OLD TABLE AS o NEW TABLE AS n EXECUTE FUNCTION upd();
DROP TRIGGER a_nope ON t1;
insert into t values (11,'q');
UPDATE t2 SET a = a + 1 RETURNING *;
UPDATE t SET a = a - 10 WHERE a=12 RETURNING *;
drop table t; drop function ins(), del(), upd(), note(), keep(), nope();
