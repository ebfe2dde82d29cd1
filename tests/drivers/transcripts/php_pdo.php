<?php
/* PHP's PDO and pg_* functions. Prints what it gets, to be compared with what it gets from PostgreSQL. */
error_reporting(E_ALL & ~E_WARNING);
ini_set('precision', '17');
$at = parse_url($argv[1]);
$dsn = "host={$at['host']} port={$at['port']} dbname=" . ltrim($at['path'], '/');

function show($value): void
{
    if (is_resource($value)) {
        $value = stream_get_contents($value);
    }
    echo var_export($value, true), "\n";
}

function step(string $name, callable $body): void
{
    echo "== $name\n";
    try {
        $body();
    } catch (Throwable $e) {
        echo get_class($e), ": ", $e->getMessage(), "\n";
    }
}

function attempt(callable $body): void
{
    try {
        show($body());
    } catch (PDOException $e) {
        echo "PDOException ", $e->getCode(), ": ", $e->getMessage(), "\n";
    }
}

$db = new PDO("pgsql:" . str_replace(' ', ';', $dsn) . ";user=postgres", null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$db->exec("SET client_min_messages = warning");
$db->exec("DROP SCHEMA IF EXISTS php CASCADE");
$db->exec("CREATE SCHEMA php");
$db->exec("SET search_path = php");

step("values in every way of preparing", function () use ($db) {
    foreach ([[], [PDO::ATTR_EMULATE_PREPARES => true], [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]] as $options) {
        $statement = $db->prepare("SELECT :i::int AS i, :t::text AS t, :b::bool AS b, :n::numeric AS n, :z::text AS z, :f::float8 AS f, :d::date AS d, :j::jsonb AS j, :a::int[] AS a", $options);
        $statement->bindValue('i', 7, PDO::PARAM_INT);
        $statement->bindValue('t', "O'Reilly \\ snow \u{2603}");
        $statement->bindValue('b', true, PDO::PARAM_BOOL);
        $statement->bindValue('n', '12.50');
        $statement->bindValue('z', null, PDO::PARAM_NULL);
        $statement->bindValue('f', '0.1');
        $statement->bindValue('d', '2024-02-29');
        $statement->bindValue('j', '{"b": [1, null], "a": "x"}');
        $statement->bindValue('a', '{1,NULL,3}');
        $statement->execute();
        show($statement->fetch(PDO::FETCH_ASSOC));
    }
});

step("a table, its rows, its keys", function () use ($db) {
    $db->exec("CREATE TABLE item (id serial PRIMARY KEY, name varchar(40) NOT NULL UNIQUE, price numeric(8,2) DEFAULT 1.5, made timestamptz, picture bytea, live boolean DEFAULT true, tags text[], CHECK (price >= 0))");
    $insert = $db->prepare("INSERT INTO item (name, price, picture, live, tags) VALUES (?, ?, ?, ?, ?) RETURNING id");
    foreach (['one', 'two', 'three'] as $i => $name) {
        $insert->bindValue(1, $name);
        $insert->bindValue(2, $i * 1.25);
        $insert->bindValue(3, "\0\xff\\$name", PDO::PARAM_LOB);
        $insert->bindValue(4, $i % 2 == 0, PDO::PARAM_BOOL);
        $insert->bindValue(5, '{"a b",c}');
        $insert->execute();
        show($insert->fetchColumn());
    }
    show($db->lastInsertId());
    show($db->lastInsertId('item_id_seq'));
    $statement = $db->query("SELECT * FROM item ORDER BY id");
    foreach ($statement as $row) {
        show(bin2hex(stream_get_contents($row['picture'])));
        unset($row['picture'], $row[4]);
        show($row);
    }
    show($db->query("SELECT name, price FROM item ORDER BY id")->fetchAll(PDO::FETCH_KEY_PAIR));
    show($db->query("SELECT live, name FROM item ORDER BY id")->fetchAll(PDO::FETCH_GROUP | PDO::FETCH_COLUMN));
    show($db->exec("UPDATE item SET price = price + 1 WHERE id > 1"));
    show($db->query("SELECT count(*) FROM item")->fetchColumn());
});

step("columns of a result", function () use ($db) {
    $statement = $db->query("SELECT id, name, price, made, picture, live, tags, 1.5::float8 AS f, now()::date AS d, '{}'::jsonb AS j, NULL AS nothing FROM item LIMIT 0");
    for ($i = 0; $i < $statement->columnCount(); $i++) {
        $meta = $statement->getColumnMeta($i);
        unset($meta['pgsql:table_oid']);
        show(json_encode($meta));
    }
});

step("errors", function () use ($db) {
    attempt(fn() => $db->exec("INSERT INTO item (name) VALUES ('one')"));
    attempt(fn() => $db->exec("INSERT INTO item (name) VALUES (NULL)"));
    attempt(fn() => $db->exec("INSERT INTO item (name, price) VALUES ('neg', -1)"));
    attempt(fn() => $db->exec("INSERT INTO item (name) VALUES ('" . str_repeat('x', 50) . "')"));
    attempt(fn() => $db->query("SELECT nothing FROM item"));
    attempt(fn() => $db->query("SELECT * FROM nothing"));
    attempt(fn() => $db->query("SELEC 1"));
    attempt(fn() => $db->query("SELECT 1/0"));
    attempt(fn() => $db->prepare("SELECT ?::int")->execute(['abc']));
    attempt(fn() => $db->prepare("SELECT ?::int")->execute([]));
    attempt(fn() => $db->prepare("SELECT ?, ?::int")->execute([1]));
    show($db->errorInfo());
    $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_SILENT);
    show($db->query("SELECT 'x'::int"));
    show($db->errorInfo());
    $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
});

step("transactions and savepoints", function () use ($db) {
    $db->beginTransaction();
    show($db->inTransaction());
    $db->exec("INSERT INTO item (name) VALUES ('four')");
    $db->exec("SAVEPOINT s");
    attempt(fn() => $db->exec("INSERT INTO item (name) VALUES ('four')"));
    attempt(fn() => $db->exec("SELECT 1"));
    $db->exec("ROLLBACK TO SAVEPOINT s");
    show($db->query("SELECT name FROM item ORDER BY id")->fetchAll(PDO::FETCH_COLUMN));
    $db->rollBack();
    show($db->inTransaction());
    show($db->query("SELECT max(name) FROM item")->fetchColumn());
    $db->beginTransaction();
    attempt(fn() => $db->exec("SELECT 1/0"));
    attempt(fn() => $db->commit());
    show($db->inTransaction());
});

step("large objects by PDO", function () use ($db) {
    $db->exec("SELECT lo_unlink(oid) FROM pg_largeobject_metadata");
    $db->beginTransaction();
    $oid = $db->pgsqlLOBCreate();
    $stream = $db->pgsqlLOBOpen($oid, 'w');
    show(fwrite($stream, str_repeat("php\0", 5000)));
    fclose($stream);
    $db->exec("CREATE TABLE files (name text, content oid)");
    $insert = $db->prepare("INSERT INTO files VALUES ('a', :oid)");
    $insert->bindValue(':oid', $oid, PDO::PARAM_LOB);
    show($insert->execute());
    $db->commit();
    $db->beginTransaction();
    $stream = $db->pgsqlLOBOpen($db->query("SELECT content FROM files")->fetchColumn(), 'r');
    show([strlen(stream_get_contents($stream)), feof($stream), fseek($stream, 9998), bin2hex(fread($stream, 4)), ftell($stream)]);
    fclose($stream);
    show($db->pgsqlLOBUnlink($oid));
    attempt(fn() => $db->pgsqlLOBOpen($oid, 'r'));
    attempt(fn() => $db->query("SELECT 1"));
    $db->rollBack();
    show($db->query("SELECT lo_unlink(content) FROM files")->fetchColumn());
});

step("scrolling cursors", function () use ($db) {
    $db->beginTransaction();
    $statement = $db->prepare("SELECT name FROM item ORDER BY id", [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $statement->execute();
    show($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST));
    show($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR));
    show($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 1));
    show($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_REL, 2));
    show($statement->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_NEXT));
    $statement->closeCursor();
    $db->commit();
});

step("COPY", function () use ($db) {
    $db->exec("CREATE TABLE copied (a int, b text, c numeric)");
    show($db->pgsqlCopyFromArray('copied', ["1\tone\t1.5", "2\t\\N\t2.5", "3\ttab\\there\t\\N"]));
    show($db->pgsqlCopyToArray('copied'));
    show($db->pgsqlCopyToArray('copied', ';', 'nil', 'a,b'));
    $file = tempnam(sys_get_temp_dir(), 'copy');
    show($db->pgsqlCopyToFile('copied', $file));
    show(file_get_contents($file));
    show($db->pgsqlCopyFromFile('copied', $file));
    show($db->query("SELECT count(*), sum(c) FROM copied")->fetch(PDO::FETCH_NUM));
    attempt(fn() => $db->pgsqlCopyFromArray('copied', ["x\ty\tz"]));
    unlink($file);
});

step("notifications", function () use ($db, $dsn) {
    $db->exec("LISTEN php_channel");
    $db->exec("NOTIFY php_channel, 'hello'");
    $got = $db->pgsqlGetNotify(PDO::FETCH_ASSOC, 2000);
    show([$got['message'], $got['payload'], $got['pid'] == $db->pgsqlGetPid()]);
    show($db->pgsqlGetNotify(PDO::FETCH_ASSOC, 10));
});

step("attributes", function () use ($db) {
    show(preg_match('/^15/', $db->getAttribute(PDO::ATTR_SERVER_VERSION)));
    show($db->getAttribute(PDO::ATTR_CONNECTION_STATUS));
    show(preg_replace('/PID: \d+/', 'PID', $db->getAttribute(PDO::ATTR_SERVER_INFO)));
    show($db->quote("it's \\ here"));
    show($db->quote("\0\1'", PDO::PARAM_LOB));
});

step("classes, functions, binding of columns", function () use ($db) {
    $row = $db->query("SELECT id, name, price FROM item WHERE id = 1")->fetchObject();
    show([$row->id, $row->name, $row->price]);
    show($db->query("SELECT id, name FROM item ORDER BY id")->fetchAll(PDO::FETCH_FUNC, fn($id, $name) => "$id=$name"));
    $statement = $db->prepare("SELECT id, live FROM item ORDER BY id");
    $statement->execute();
    $statement->bindColumn(1, $id, PDO::PARAM_INT);
    $statement->bindColumn('live', $live, PDO::PARAM_BOOL);
    while ($statement->fetch(PDO::FETCH_BOUND)) {
        show([$id, $live]);
    }
    $db->setAttribute(PDO::ATTR_STRINGIFY_FETCHES, true);
    show($db->query("SELECT 1, 1::int8, true, 1.5::float8, 1.5")->fetch(PDO::FETCH_NUM));
    $db->setAttribute(PDO::ATTR_STRINGIFY_FETCHES, false);
    show($db->query("SELECT 1, 1::int8, true, 1.5::float8, 1.5")->fetch(PDO::FETCH_NUM));
    $statement = $db->prepare("SELECT name FROM item WHERE name LIKE ? ESCAPE '!' AND tags ?? 'c' ORDER BY 1");
    attempt(fn() => $statement->execute(['t%']));
    $statement = $db->prepare("SELECT '{\"a\": 1}'::jsonb ?? ?");
    $statement->execute(['a']);
    show($statement->fetchColumn());
});

/* ---- the functions of the extension pgsql ---- */

$pg = pg_connect("$dsn user=postgres options='-c search_path=php -c client_min_messages=notice'", PGSQL_CONNECT_FORCE_NEW);

step("pg_query and what a result knows", function () use ($pg) {
    $result = pg_query($pg, "SELECT id, name, price, live, tags FROM item ORDER BY id");
    show([pg_num_rows($result), pg_num_fields($result), pg_affected_rows($result)]);
    for ($i = 0; $i < pg_num_fields($result); $i++) {
        show([pg_field_name($result, $i), pg_field_type($result, $i), pg_field_size($result, $i), pg_field_table($result, $i), pg_field_num($result, pg_field_name($result, $i)), pg_field_prtlen($result, 0, $i), pg_field_is_null($result, 0, $i)]);
    }
    show(pg_fetch_all($result));
    show(pg_fetch_all_columns($result, 1));
    show(pg_fetch_result($result, 1, 'name'));
    show(pg_result_status($result, PGSQL_STATUS_STRING));
    show(pg_fetch_row(pg_query($pg, "SELECT 1 AS a; SELECT 2 AS b")));
});

step("pg_query_params, pg_prepare, pg_execute", function () use ($pg) {
    show(pg_fetch_row(pg_query_params($pg, 'SELECT $1::int + 1, $2::text, $3::bool, $4::text', [41, "a'b", 'f', null])));
    pg_prepare($pg, 'find', 'SELECT name FROM item WHERE id = $1');
    show(pg_fetch_result(pg_execute($pg, 'find', [2]), 0, 0));
    show(pg_prepare($pg, 'find', 'SELECT 1'));
    show(pg_last_error($pg));
    show(pg_fetch_all(pg_query($pg, "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements")));
});

step("pg_insert, pg_select, pg_update, pg_delete, pg_convert, pg_meta_data", function () use ($pg) {
    $meta = pg_meta_data($pg, 'php.item');
    show($meta);
    show(pg_meta_data($pg, 'php.item', true));
    show(pg_convert($pg, 'php.item', ['id' => '9', 'name' => "q'q", 'price' => '3.5', 'made' => '2024-01-02 03:04:05', 'live' => 't']));
    show(pg_insert($pg, 'php.item', ['id' => '9', 'name' => "q'q", 'price' => '3.5', 'made' => '2024-01-02 03:04:05', 'live' => 't'], PGSQL_DML_STRING));
    show((bool) pg_insert($pg, 'php.item', ['id' => '9', 'name' => "q'q", 'price' => '3.5', 'live' => 't']));
    show(pg_update($pg, 'php.item', ['name' => 'nine'], ['id' => '9']));
    $rows = pg_select($pg, 'php.item', ['id' => '9']);
    show([$rows[0]['name'], $rows[0]['price'], $rows[0]['live']]);
    show(pg_delete($pg, 'php.item', ['id' => '9']));
});

step("errors' fields", function () use ($pg) {
    foreach (["INSERT INTO item (name) VALUES ('one')", "SELECT * FROM item WHERE nme = 1", "SELECT 'x'::date"] as $sql) {
        pg_send_query($pg, $sql);
        $result = pg_get_result($pg);
        foreach ([PGSQL_DIAG_SEVERITY, PGSQL_DIAG_SQLSTATE, PGSQL_DIAG_MESSAGE_PRIMARY, PGSQL_DIAG_MESSAGE_DETAIL, PGSQL_DIAG_MESSAGE_HINT, PGSQL_DIAG_STATEMENT_POSITION, PGSQL_DIAG_CONTEXT, PGSQL_DIAG_SCHEMA_NAME, PGSQL_DIAG_TABLE_NAME, PGSQL_DIAG_COLUMN_NAME, PGSQL_DIAG_DATATYPE_NAME, PGSQL_DIAG_CONSTRAINT_NAME] as $field) {
            echo json_encode(pg_result_error_field($result, $field)), " ";
        }
        echo "\n", pg_result_error($result), "\n";
        while (pg_get_result($pg)) {
        }
    }
});

step("notices, asynchronous queries, cancel", function () use ($pg) {
    pg_query($pg, "DROP TABLE IF EXISTS not_there");
    show(pg_last_notice($pg));
    pg_query($pg, "DO $$ BEGIN RAISE NOTICE 'told %', 1; RAISE WARNING 'warned'; END $$");
    show(pg_last_notice($pg, PGSQL_NOTICE_ALL));
    pg_send_query($pg, "SELECT 1 AS a; SELECT 2 AS b; SELECT 1/0; SELECT 3");
    while ($result = pg_get_result($pg)) {
        show([pg_result_status($result), pg_result_error($result), pg_num_rows($result)]);
    }
    show(pg_send_query_params($pg, 'SELECT $1::text', ['later']));
    while (pg_connection_busy($pg)) {
        usleep(1000);
    }
    show(pg_fetch_result(pg_get_result($pg), 0, 0));
    pg_get_result($pg);
    pg_send_query($pg, "SELECT pg_sleep(20)");
    show(pg_cancel_query($pg));
    show(pg_connection_status($pg) === PGSQL_CONNECTION_OK);
    show(pg_transaction_status($pg));
    pg_query($pg, "BEGIN");
    show(pg_transaction_status($pg));
    @pg_query($pg, "SELECT 1/0");
    show(pg_transaction_status($pg));
    pg_query($pg, "ROLLBACK");
});

step("pg_copy_from, pg_copy_to, pg_put_line", function () use ($pg) {
    pg_query($pg, "CREATE TABLE lines (a int, b text)");
    show(pg_copy_from($pg, 'lines', ["1\tone\n", "2\t\\N\n"]));
    show(pg_copy_to($pg, 'lines'));
    show(pg_copy_to($pg, 'lines', '|', 'NIL'));
    pg_query($pg, "COPY lines FROM STDIN");
    pg_put_line($pg, "3\tthree\n");
    pg_put_line($pg, "\\.\n");
    show(pg_end_copy($pg));
    show(pg_fetch_all_columns(pg_query($pg, "SELECT a FROM lines ORDER BY a")));
});

step("pg_lo_*", function () use ($pg) {
    pg_query($pg, "BEGIN");
    show(pg_lo_create($pg, 4711));
    $lob = pg_lo_open($pg, 4711, 'rw');
    show([pg_lo_write($lob, "some bytes"), pg_lo_seek($lob, -5, PGSQL_SEEK_END), pg_lo_tell($lob), pg_lo_read($lob, 100), pg_lo_truncate($lob, 4), pg_lo_seek($lob, 0), pg_lo_read_all($lob), pg_lo_close($lob)]);
    echo "\n";
    $path = tempnam('/tmp', 'lob');
    show([pg_lo_export($pg, 4711, $path), file_get_contents($path), pg_lo_import($pg, $path, 4712), pg_lo_unlink($pg, 4711)]);
    pg_query($pg, "SAVEPOINT s");
    show([@pg_lo_unlink($pg, 4711), pg_last_error($pg)]);
    pg_query($pg, "ROLLBACK TO s");
    show(pg_fetch_all(pg_query($pg, "SELECT * FROM pg_largeobject")));
    pg_query($pg, "ROLLBACK");
    unlink($path);
});

step("escapes, parameters, encodings", function () use ($pg) {
    show([pg_escape_string($pg, "it's"), pg_escape_literal($pg, "it's \\"), pg_escape_identifier($pg, 'a "b"'), pg_escape_bytea($pg, "\0\xffa")]);
    show(bin2hex(pg_unescape_bytea('\x00ff61')));
    show([pg_parameter_status($pg, 'server_encoding'), pg_parameter_status($pg, 'DateStyle'), pg_parameter_status($pg, 'integer_datetimes'), pg_parameter_status($pg, 'is_superuser'), pg_parameter_status($pg, 'in_hot_standby'), pg_parameter_status($pg, 'standard_conforming_strings')]);
    show([pg_client_encoding($pg), pg_set_client_encoding($pg, 'LATIN1'), pg_client_encoding($pg)]);
    show(bin2hex(pg_fetch_result(pg_query($pg, "SELECT chr(233)"), 0, 0)));
    pg_set_client_encoding($pg, 'UTF8');
    show(pg_trace('/dev/null', 'w', $pg));
    pg_untrace($pg);
    show(pg_ping($pg));
    pg_query($pg, "LISTEN c");
    pg_query($pg, "NOTIFY c, 'x'");
    show(array_slice(pg_get_notify($pg, PGSQL_ASSOC), 0, 1));
    show(count(pg_version($pg)) > 3);
});

step("the schema goes", function () use ($pg) {
    pg_query($pg, "DROP SCHEMA php CASCADE");
    show(pg_last_notice($pg));
});
