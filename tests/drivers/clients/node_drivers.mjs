// node-postgres and postgres.js: values, pools, cursors, streams, COPY, notifications, cancel, errors, transactions.
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import copy from "pg-copy-streams";
import Cursor from "pg-cursor";
import QueryStream from "pg-query-stream";
import postgres from "postgres";
import { address, assert, run, step } from "./steps.mjs";

const pool = new pg.Pool({ ...address, max: 3 });
const sql = postgres({ ...address, max: 3, onnotice: () => {} });
const failure = (code) => (error) => error.code === code;

step("pg: values", async () => {
  const when = new Date("2020-02-03T04:05:06.789Z");
  const sent = [true, 5, "snow ☃", when, Buffer.from([0, 255]), { a: [1, null] }, [1, 2, 3], null];
  const { rows, fields } = await pool.query(
    "SELECT $1::bool b, $2::int i, $3::text t, $4::timestamptz w, $5::bytea y, $6::jsonb j, $7::int[] l, $8::text n, 2::int8 big, 1.50::numeric(5,2) num",
    sent,
  );
  assert.deepEqual(Object.values(rows[0]), [...sent, "2", "1.50"]);
  assert.deepEqual(fields.slice(0, 3).map((f) => [f.name, f.dataTypeID]), [["b", 16], ["i", 23], ["t", 25]]);
  assert.deepEqual((await pool.query({ text: "SELECT 1 a, 2 a", rowMode: "array" })).rows, [[1, 2]]);
  assert.deepEqual((await pool.query("SELECT 1 AS a; SELECT 2 AS b")).map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }]);
});

step("pg: named statements, transactions, errors", async () => {
  const client = await pool.connect();
  await client.query("CREATE TEMP TABLE n (id int PRIMARY KEY, s text NOT NULL)");
  for (let i = 0; i < 20; i++) await client.query({ name: "put", text: "INSERT INTO n VALUES ($1, $2)", values: [i, `s${i}`] });
  await client.query("BEGIN");
  await assert.rejects(client.query("INSERT INTO n VALUES (1, 'again')"), (e) => e.code === "23505" && e.constraint === "n_pkey" && e.table === "n");
  await assert.rejects(client.query("SELECT 1"), failure("25P02"));
  await client.query("ROLLBACK");
  await assert.rejects(client.query("SELEC 1"), (e) => e.code === "42601" && e.position === "1");
  const { rowCount, command } = await client.query("UPDATE n SET s = s || '!' WHERE id < 7");
  assert.deepEqual([rowCount, command], [7, "UPDATE"]);
  client.release();
});

step("pg: cursor, stream, COPY", async () => {
  const client = await pool.connect();
  const cursor = client.query(new Cursor("SELECT g FROM generate_series(1, $1::int) g", [250]));
  assert.equal((await cursor.read(100)).length, 100);
  assert.equal((await cursor.read(1000)).length, 150);
  await cursor.close();
  let seen = 0;
  for await (const row of client.query(new QueryStream("SELECT * FROM generate_series(1, 1000) g", [], { batchSize: 64 }))) seen += row.g;
  assert.equal(seen, 500500);
  await client.query("CREATE TEMP TABLE c (id int, s text)");
  await pipeline(Readable.from(Array.from({ length: 3000 }, (_, i) => `${i}\tname ${i}\n`)), client.query(copy.from("COPY c FROM STDIN")));
  let out = "";
  const sink = new Writable({ write: (chunk, _, done) => ((out += chunk), done()) });
  await pipeline(client.query(copy.to("COPY (SELECT * FROM c WHERE id < 3 ORDER BY id) TO STDOUT (FORMAT csv)")), sink);
  assert.equal(out, "0,name 0\n1,name 1\n2,name 2\n");
  client.release();
});

step("pg: notifications, notices, time-outs", async () => {
  const client = new pg.Client({ ...address, statement_timeout: 300, application_name: "node" });
  await client.connect();
  const heard = new Promise((resolve) => client.on("notification", resolve));
  const noticed = new Promise((resolve) => client.on("notice", resolve));
  await client.query("LISTEN node");
  await pool.query("SELECT pg_notify('node', 'hello')");
  assert.equal((await heard).payload, "hello");
  await client.query("DROP TABLE IF EXISTS never_was");
  assert.equal((await noticed).message, 'table "never_was" does not exist, skipping');
  await assert.rejects(client.query("SELECT pg_sleep(60)"), failure("57014"));
  assert.equal((await client.query("SHOW application_name")).rows[0].application_name, "node");
  await client.end();
});

step("postgres.js: values and helpers", async () => {
  const [row] = await sql`SELECT ${true}::bool b, ${7}::int i, ${"x"}::text t, ${sql.json({ a: 1 })}::jsonb j, ${[1, 2]}::int[] l, ${new Date(0)}::timestamptz w, ${null}::text n`;
  assert.deepEqual({ ...row }, { b: true, i: 7, t: "x", j: { a: 1 }, l: [1, 2], w: new Date(0), n: null });
  await sql`DROP TABLE IF EXISTS js_people`;
  await sql`CREATE TABLE js_people (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE, age int)`;
  const people = [{ name: "Ann", age: 30 }, { name: "Bob", age: 40 }];
  assert.equal((await sql`INSERT INTO js_people ${sql(people)} RETURNING *`).length, 2);
  assert.equal((await sql`UPDATE js_people SET ${sql({ age: 41 }, "age")} WHERE name = ${"Bob"}`).count, 1);
  assert.deepEqual([...(await sql`SELECT name FROM js_people WHERE age IN ${sql([30, 41])} ORDER BY 1`)].map((r) => r.name), ["Ann", "Bob"]);
  assert.equal((await sql`SELECT ${sql("name")} FROM ${sql("js_people")} ${sql`WHERE age = 30`}`)[0].name, "Ann");
  const described = await sql`SELECT name, age FROM js_people`.describe();
  assert.deepEqual(described.columns.map((c) => [c.name, c.type]), [["name", 25], ["age", 23]]);
});

step("postgres.js: transactions, savepoints, errors, cancel", async () => {
  await assert.rejects(sql.begin(async (t) => {
    await t`INSERT INTO js_people (name) VALUES ('Cyd')`;
    await t.savepoint((s) => s`INSERT INTO js_people (name) VALUES ('Ann')`).catch((e) => assert.equal(e.code, "23505"));
    await t`INSERT INTO js_people (name) VALUES ('Ann')`;
  }), failure("23505"));
  assert.equal((await sql`SELECT count(*)::int n FROM js_people`)[0].n, 2);
  const results = await sql.begin((t) => [t`SELECT 1 AS a`, t`SELECT 2 AS a`]);
  assert.deepEqual(results.map((r) => r[0].a), [1, 2]);
  const slow = sql`SELECT pg_sleep(60)`;
  setTimeout(() => slow.cancel(), 200);
  await assert.rejects(slow, failure("57014"));
});

step("postgres.js: cursors, LISTEN, simple and unsafe", async () => {
  let rows = 0;
  for await (const part of sql`SELECT * FROM generate_series(1, 105) g`.cursor(10)) rows += part.length;
  assert.equal(rows, 105);
  let heard;
  const got = new Promise((resolve) => (heard = resolve));
  const { unlisten } = await sql.listen("js", heard);
  await sql.notify("js", "payload");
  assert.equal(await got, "payload");
  await unlisten();
  assert.deepEqual((await sql`SELECT 1 a; SELECT 2 a`.simple()).map((r) => r[0].a), [1, 2]);
  assert.equal((await sql.unsafe("SELECT $1::int + 1 AS n", [41], { prepare: true }))[0].n, 42);
});

step("postgres.js: COPY", async () => {
  await sql.begin(async (t) => {
    await pipeline(Readable.from(["Zed,1\n", "Yan,2\n"]), await t`COPY js_people (name, age) FROM STDIN (FORMAT csv)`.writable());
  });
  const readable = await sql`COPY (SELECT name FROM js_people WHERE age < 3 ORDER BY name) TO STDOUT`.readable();
  let out = "";
  for await (const chunk of readable) out += chunk;
  assert.equal(out, "Yan\nZed\n");
  await sql`DROP TABLE js_people`;
});

await run(async () => {
  await pool.end();
  await sql.end();
});
