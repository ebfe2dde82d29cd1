// Knex, Sequelize, TypeORM, Drizzle and Kysely: each makes its tables, uses them, looks at the catalog, drops them.
import "reflect-metadata";
import { desc, eq, relations, sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, jsonb, pgTable, serial, text, timestamp } from "drizzle-orm/pg-core";
import knexModule from "knex";
import { Kysely, PostgresDialect, sql as kyselySql } from "kysely";
import pg from "pg";
import sequelizeModule from "sequelize";
import typeorm from "typeorm";
import { address, assert, run, step } from "./steps.mjs";

const pool = new pg.Pool({ ...address, max: 2 });
const connection = { host: address.host, port: address.port, user: address.user, database: address.database };

step("Knex: migrations, queries, columnInfo", async () => {
  const knex = knexModule({ client: "pg", connection });
  await knex.schema.dropTableIfExists("knex_book");
  await knex.schema.dropTableIfExists("knex_author");
  await knex.schema.createTable("knex_author", (t) => {
    t.increments("id");
    t.string("name", 50).notNullable().unique().comment("as printed");
    t.jsonb("extra").defaultTo("{}");
    t.timestamps(true, true);
  });
  await knex.schema.createTable("knex_book", (t) => {
    t.uuid("id").primary().defaultTo(knex.raw("gen_random_uuid()"));
    t.integer("author").references("knex_author.id").onDelete("CASCADE");
    t.decimal("price", 8, 2).index();
    t.enu("state", ["new", "old"]).defaultTo("new");
  });
  await knex.schema.alterTable("knex_book", (t) => { t.string("title"); t.renameColumn("state", "status"); t.dropIndex("price"); });
  const [ann] = await knex("knex_author").insert({ name: "Ann", extra: { a: 1 } }).returning("*");
  assert.equal(ann.extra.a, 1);
  await knex.batchInsert("knex_book", Array.from({ length: 50 }, (_, i) => ({ author: ann.id, price: i, title: `t${i}` })), 20);
  await knex("knex_author").insert({ name: "Ann" }).onConflict("name").merge({ extra: { a: 2 } });
  const rows = await knex("knex_book as b").join("knex_author as a", "a.id", "b.author").where("b.price", ">", 40)
    .groupBy("a.name").select("a.name").count("* as n").sum("b.price as s");
  assert.deepEqual(rows, [{ name: "Ann", n: "9", s: "405.00" }]);
  await assert.rejects(knex.transaction(async (t) => { await t("knex_author").insert({ name: "Bob" }); throw new Error("back"); }), /back/);
  assert.equal((await knex("knex_author").count())[0].count, "1");
  const info = await knex("knex_author").columnInfo();
  assert.deepEqual(info.name, { type: "character varying", maxLength: 50, nullable: false, defaultValue: null });
  assert.equal(await knex.schema.hasTable("knex_book"), true);
  assert.equal(await knex.schema.hasColumn("knex_book", "status"), true);
  await knex.schema.dropTable("knex_book");
  await knex.schema.dropTable("knex_author");
  await knex.destroy();
});

step("Sequelize: sync, associations, describe", async () => {
  const { DataTypes, Op, Sequelize } = sequelizeModule;
  const sequelize = new Sequelize({ ...address, username: address.user, dialect: "postgres", logging: false });
  const User = sequelize.define("seq_user", {
    name: { type: DataTypes.STRING(40), unique: true, allowNull: false },
    tags: DataTypes.ARRAY(DataTypes.STRING),
    extra: DataTypes.JSONB,
    score: { type: DataTypes.DECIMAL(8, 2), defaultValue: 0 },
  });
  const Task = sequelize.define("seq_task", { title: DataTypes.TEXT, due: DataTypes.DATE, key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 } },
    { indexes: [{ fields: ["due", { name: "title", order: "DESC" }] }] });
  User.hasMany(Task, { onDelete: "CASCADE" });
  Task.belongsTo(User);
  await sequelize.sync({ force: true });
  await sequelize.sync({ alter: true });
  const ann = await User.create({ name: "Ann", tags: ["a", "b"], extra: { deep: { n: 1 } } });
  await Task.bulkCreate(Array.from({ length: 10 }, (_, i) => ({ title: `t${i}`, seqUserId: ann.id, due: new Date(i * 86400000) })));
  const found = await User.findOne({ where: { extra: { deep: { n: 1 } }, tags: { [Op.contains]: ["b"] } }, include: [{ model: Task, where: { title: { [Op.iLike]: "T%" } } }] });
  assert.equal(found.seq_tasks.length, 10);
  await User.upsert({ name: "Ann", score: 5 }, { conflictFields: ["name"] });
  const [user, created] = await User.findCreateFind({ where: { name: "Bob" } });
  assert.deepEqual([user.name, created], ["Bob", true]);
  for (const first of [true, false]) {  // a function in pg_temp that catches unique_violation, dropped in the same message
    const [found, made] = await User.findOrCreate({ where: { name: "Cid" } });
    assert.deepEqual([found.name, made], ["Cid", first]);
  }
  assert.equal(await User.increment({ score: 2 }, { where: { name: "Ann" } }).then(() => User.sum("score")), 7);
  await assert.rejects(User.create({ name: "Ann" }), (e) => e.name === "SequelizeUniqueConstraintError" && e.fields.name === "Ann");
  await sequelize.transaction({ isolationLevel: "SERIALIZABLE" }, (t) => Task.destroy({ where: { title: "t1" }, transaction: t }));
  assert.equal((await Task.findAndCountAll({ limit: 2, order: [["due", "DESC"]] })).count, 9);
  const columns = await sequelize.getQueryInterface().describeTable("seq_users");
  assert.deepEqual([columns.name.type, columns.id.primaryKey, columns.tags.type], ["CHARACTER VARYING(40)", true, "ARRAY"]);
  assert.equal((await sequelize.getQueryInterface().showIndex("seq_tasks")).length, 2);
  assert.equal((await sequelize.getQueryInterface().getForeignKeyReferencesForTable("seq_tasks"))[0].referencedTableName, "seq_users");
  await sequelize.drop();
  await sequelize.close();
});

step("TypeORM: synchronize, repositories, query builder", async () => {
  const { DataSource, EntitySchema } = typeorm;
  const Writer = new EntitySchema({ name: "type_writer", columns: {
    id: { type: "int", primary: true, generated: "identity" }, name: { type: "varchar", length: 30, unique: true },
    born: { type: "date", nullable: true }, made: { type: "timestamptz", createDate: true }, version: { type: "int", version: true },
  }, relations: { works: { type: "one-to-many", target: "type_work", inverseSide: "writer", cascade: true } } });
  const Work = new EntitySchema({ name: "type_work", columns: {
    id: { type: "uuid", primary: true, generated: "uuid" }, title: { type: "text" }, price: { type: "numeric", precision: 8, scale: 2, default: 1 }, tags: { type: "text", array: true, default: [] },
  }, relations: { writer: { type: "many-to-one", target: "type_writer", inverseSide: "works", onDelete: "CASCADE" } }, indices: [{ columns: ["title", "price"] }], checks: [{ expression: "price >= 0" }] });
  const source = new DataSource({ ...address, username: address.user, type: "postgres", entities: [Writer, Work], synchronize: true, installExtensions: false, uuidExtension: "pgcrypto" });
  await source.initialize();
  await source.synchronize(); // compares with what it finds
  const writers = source.getRepository(Writer);
  const ann = await writers.save({ name: "Ann", works: [{ title: "one", tags: ["x"] }, { title: "two", price: 2.5 }] });
  assert.equal(ann.works.length, 2);
  const [found] = await writers.find({ where: { name: "Ann" }, relations: { works: true }, order: { works: { title: "ASC" } } });
  assert.deepEqual(found.works.map((w) => [w.title, w.price]), [["one", "1.00"], ["two", "2.50"]]);
  found.name = "Anna";
  assert.equal((await writers.save(found)).version, 2);
  const raw = await source.createQueryBuilder(Work, "w").leftJoin("w.writer", "a").select("a.name", "name").addSelect("SUM(w.price)", "total").groupBy("a.name").getRawMany();
  assert.deepEqual(raw, [{ name: "Anna", total: "3.50" }]);
  await writers.upsert([{ name: "Anna", born: "2000-01-02" }], ["name"]);
  const generated = await source.driver.createSchemaBuilder().log();
  assert.deepEqual(generated.upQueries.map((q) => q.query), []);
  await assert.rejects(source.transaction(async (m) => { await m.insert(Writer, { name: "Bob" }); throw new Error("back"); }), /back/);
  assert.equal(await writers.count(), 1);
  await source.dropDatabase();
  await source.destroy();
});

step("Drizzle: relational queries", async () => {
  const authors = pgTable("driz_author", { id: serial("id").primaryKey(), name: text("name").notNull().unique(), extra: jsonb("extra"), made: timestamp("made").defaultNow() });
  const posts = pgTable("driz_post", { id: serial("id").primaryKey(), title: text("title"), author: integer("author").references(() => authors.id) });
  const authorRelations = relations(authors, ({ many }) => ({ posts: many(posts) }));
  const postRelations = relations(posts, ({ one }) => ({ author: one(authors, { fields: [posts.author], references: [authors.id] }) }));
  const db = drizzle(pool, { schema: { authors, posts, authorRelations, postRelations } });
  await db.execute(drizzleSql`DROP TABLE IF EXISTS driz_post, driz_author`);
  await db.execute(drizzleSql`CREATE TABLE driz_author (id serial PRIMARY KEY, name text NOT NULL UNIQUE, extra jsonb, made timestamp DEFAULT now())`);
  await db.execute(drizzleSql`CREATE TABLE driz_post (id serial PRIMARY KEY, title text, author int REFERENCES driz_author)`);
  const [ann] = await db.insert(authors).values({ name: "Ann", extra: { a: [1] } }).onConflictDoUpdate({ target: authors.name, set: { extra: null } }).returning();
  await db.insert(posts).values([{ title: "p1", author: ann.id }, { title: "p2", author: ann.id }]);
  const all = await db.query.authors.findMany({ with: { posts: { orderBy: (p) => desc(p.title) } } });
  assert.deepEqual(all.map((a) => [a.name, a.extra, a.posts.map((p) => p.title)]), [["Ann", { a: [1] }, ["p2", "p1"]]]);
  await db.transaction(async (t) => { await t.update(posts).set({ title: "changed" }).where(eq(posts.title, "p1")); });
  assert.equal(await db.$count(posts, eq(posts.title, "changed")), 1);
  await db.execute(drizzleSql`DROP TABLE driz_post, driz_author`);
});

step("Kysely: schema, queries, introspection", async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ ...address, max: 2 }) }) });
  await db.schema.dropTable("kys_pet").ifExists().execute();
  await db.schema.createTable("kys_pet").addColumn("id", "serial", (c) => c.primaryKey()).addColumn("name", "varchar(20)", (c) => c.notNull())
    .addColumn("weight", "numeric(6, 2)", (c) => c.check(kyselySql`weight > 0`)).addColumn("at", "timestamptz", (c) => c.defaultTo(kyselySql`now()`)).execute();
  await db.insertInto("kys_pet").values([{ name: "Rex", weight: 20 }, { name: "Tom", weight: 4.5 }]).execute();
  const rows = await db.with("heavy", (q) => q.selectFrom("kys_pet").where("weight", ">", 10).selectAll()).selectFrom("heavy").select(["name", (e) => e.fn.sum("weight").over((o) => o.partitionBy("name")).as("w")]).execute();
  assert.deepEqual(rows, [{ name: "Rex", w: "20.00" }]);
  const table = (await db.introspection.getTables()).find((t) => t.name === "kys_pet");
  assert.deepEqual(table.columns.map((c) => [c.name, c.dataType, c.isNullable, c.isAutoIncrementing, c.hasDefaultValue]),
    [["id", "int4", false, true, true], ["name", "varchar", false, false, false], ["weight", "numeric", true, false, false], ["at", "timestamptz", true, false, true]]);
  await db.schema.dropTable("kys_pet").execute();
  await db.destroy();
});

await run(() => pool.end());
