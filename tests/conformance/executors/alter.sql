ALTER TABLE altered ADD COLUMN added int DEFAULT 42;
ALTER TABLE altered DROP COLUMN gone;
ALTER TABLE altered ADD COLUMN late text;
INSERT INTO altered VALUES (20, 200, 1, 'l'), (21, NULL, NULL, NULL);
UPDATE altered SET late = 'u' WHERE id = 2;
