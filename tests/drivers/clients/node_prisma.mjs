// Prisma's client: generated from a schema, its queries compiled in WebAssembly and sent by node-postgres (@prisma/adapter-pg).
// prisma migrate and db pull need an engine that no npm package holds, so the tables are made as migrate would make them.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { address, assert, run, step } from "./steps.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const connection = { host: address.host, port: address.port, user: address.user, database: address.database };
const SCHEMA = `
generator client {
  provider = "prisma-client-js"
  output   = "../client"
}
datasource db {
  provider = "postgresql"
}
enum Role {
  ADMIN
  USER
}
model User {
  id    Int      @id @default(autoincrement())
  email String   @unique
  role  Role     @default(USER)
  born  DateTime @default(now())
  extra Json?
  tags  String[]
  score Decimal  @default(0) @db.Decimal(10, 2)
  posts Post[]
}
model Post {
  id       String  @id @default(uuid()) @db.Uuid
  title    String  @db.VarChar(80)
  views    BigInt  @default(0)
  data     Bytes?
  author   User    @relation(fields: [authorId], references: [id], onDelete: Cascade)
  authorId Int
  topics   Topic[]
  @@unique([authorId, title])
}
model Topic {
  name  String @id
  posts Post[]
}
`;
const TABLES = `
DROP SCHEMA IF EXISTS prisma CASCADE; CREATE SCHEMA prisma; SET search_path = prisma;
CREATE TYPE "Role" AS ENUM ('ADMIN', 'USER');
CREATE TABLE "User" ("id" SERIAL NOT NULL, "email" TEXT NOT NULL, "role" "Role" NOT NULL DEFAULT 'USER',
  "born" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "extra" JSONB, "tags" TEXT[], "score" DECIMAL(10,2) NOT NULL DEFAULT 0,
  CONSTRAINT "User_pkey" PRIMARY KEY ("id"));
CREATE TABLE "Post" ("id" UUID NOT NULL, "title" VARCHAR(80) NOT NULL, "views" BIGINT NOT NULL DEFAULT 0, "data" BYTEA,
  "authorId" INTEGER NOT NULL, CONSTRAINT "Post_pkey" PRIMARY KEY ("id"));
CREATE TABLE "Topic" ("name" TEXT NOT NULL, CONSTRAINT "Topic_pkey" PRIMARY KEY ("name"));
CREATE TABLE "_PostToTopic" ("A" UUID NOT NULL, "B" TEXT NOT NULL, CONSTRAINT "_PostToTopic_AB_pkey" PRIMARY KEY ("A","B"));
CREATE UNIQUE INDEX "User_email_key" ON "User"("email");
CREATE UNIQUE INDEX "Post_authorId_title_key" ON "Post"("authorId", "title");
CREATE INDEX "_PostToTopic_B_index" ON "_PostToTopic"("B");
ALTER TABLE "Post" ADD CONSTRAINT "Post_authorId_fkey" FOREIGN KEY ("authorId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "_PostToTopic" ADD CONSTRAINT "_PostToTopic_A_fkey" FOREIGN KEY ("A") REFERENCES "Post"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "_PostToTopic" ADD CONSTRAINT "_PostToTopic_B_fkey" FOREIGN KEY ("B") REFERENCES "Topic"("name") ON DELETE CASCADE ON UPDATE CASCADE;
`;
let prisma;

async function plain(sql) {
  const client = new pg.Client(connection);
  await client.connect();
  await client.query(sql);
  await client.end();
}

step("the client is generated", async () => {
  mkdirSync(join(here, "prisma"), { recursive: true });
  writeFileSync(join(here, "prisma/schema.prisma"), SCHEMA);
  execFileSync("node", ["node_modules/prisma/build/index.js", "generate"], {
    cwd: here, stdio: ["ignore", "pipe", "pipe"],
    // the engine of migrate, which generate does not call
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1", PRISMA_HIDE_UPDATE_MESSAGE: "1" },
  });
  await plain(TABLES);
  const { default: client } = await import(join(here, "client/index.js"));
  prisma = new client.PrismaClient({ adapter: new PrismaPg(connection, { schema: "prisma" }) });
});

step("nested writes, includes, filters", async () => {
  const ann = await prisma.user.create({
    data: {
      email: "ann@example.com", role: "ADMIN", extra: { langs: ["de", "en"], age: 30 }, tags: ["x", "y"], score: "12.50",
      posts: { create: [{ title: "one", views: 5n, data: Buffer.from([0, 1, 255]), topics: { create: [{ name: "sql" }] } }, { title: "two" }] },
    },
    include: { posts: { orderBy: { title: "asc" }, include: { topics: true } } },
  });
  assert.equal(ann.id, 1);
  assert.equal(ann.posts[0].views, 5n);
  assert.deepEqual([...ann.posts[0].data], [0, 1, 255]);
  assert.equal(ann.posts[0].topics[0].name, "sql");
  assert.equal(ann.score.toString(), "12.5");
  assert.ok(ann.born instanceof Date);
  await prisma.user.createMany({ data: Array.from({ length: 30 }, (_, i) => ({ email: `u${i}@example.com`, tags: [`t${i % 3}`], score: i })), skipDuplicates: true });
  assert.equal(await prisma.user.count({ where: { OR: [{ email: { contains: "U1", mode: "insensitive" } }, { tags: { has: "x" } }] } }), 12);
  assert.equal(await prisma.user.count({ where: { extra: { path: ["langs"], array_contains: ["en"] } } }), 1);
  assert.equal(await prisma.user.count({ where: { posts: { some: { topics: { some: { name: "sql" } } } }, role: { in: ["ADMIN"] } } }), 1);
  const page = await prisma.user.findMany({ orderBy: [{ score: "desc" }, { id: "asc" }], skip: 1, take: 2, cursor: { id: 31 }, select: { email: true } });
  assert.deepEqual(page.map((u) => u.email), ["u28@example.com", "u27@example.com"]);
  assert.equal((await prisma.user.findUniqueOrThrow({ where: { email: "ann@example.com" }, include: { _count: { select: { posts: true } } } }))._count.posts, 2);
});

step("aggregates, groups, upsert, updates", async () => {
  const sums = await prisma.user.groupBy({ by: ["tags"], _sum: { score: true }, _count: true, having: { score: { _sum: { gt: 140 } } }, orderBy: { tags: "asc" } });
  assert.deepEqual(sums.map((s) => [s.tags[0], s._sum.score.toNumber(), s._count]), [["t1", 145, 10], ["t2", 155, 10]]);
  assert.equal((await prisma.user.aggregate({ _avg: { score: true }, _max: { born: true }, where: { role: "USER" } }))._avg.score.toNumber(), 14.5);
  for (let i = 0; i < 2; i++) await prisma.topic.upsert({ where: { name: "up" }, create: { name: "up" }, update: { name: "up" } });
  const post = await prisma.post.update({ where: { authorId_title: { authorId: 1, title: "one" } }, data: { views: { increment: 2 }, topics: { connect: { name: "up" } } }, include: { topics: true } });
  assert.equal(post.views, 7n);
  assert.equal(post.topics.length, 2);
  assert.equal((await prisma.user.updateMany({ where: { score: { gte: 20 }, role: "USER" }, data: { tags: { push: "late" } } })).count, 10);
  assert.equal((await prisma.user.deleteMany({ where: { tags: { has: "late" } } })).count, 10);
  await prisma.user.delete({ where: { id: 1 } });
  assert.equal(await prisma.post.count(), 0);
});

step("transactions, raw queries, errors", async () => {
  await prisma.$transaction([prisma.topic.create({ data: { name: "a" } }), prisma.topic.create({ data: { name: "b" } })]);
  await assert.rejects(prisma.$transaction(async (t) => {
    await t.topic.create({ data: { name: "c" } });
    await t.topic.create({ data: { name: "a" } });
  }, { isolationLevel: "Serializable" }), (error) => error.code === "P2002");
  assert.equal(await prisma.topic.count({ where: { name: { in: ["a", "b", "c"] } } }), 2);
  const rows = await prisma.$queryRaw`SELECT name, length(name) AS n, now() AS at FROM "prisma"."Topic" WHERE name = ${"a"}`;
  assert.equal(rows[0].n, 1);
  assert.equal(await prisma.$executeRaw`UPDATE "prisma"."Topic" SET name = name || '!' WHERE name = ANY(${["a", "b"]})`, 2);
  await assert.rejects(prisma.post.create({ data: { title: "x", authorId: 9999 } }), (error) => error.code === "P2003");
  await assert.rejects(prisma.user.findUniqueOrThrow({ where: { id: 9999 } }), (error) => error.code === "P2025");
  await assert.rejects(prisma.$queryRaw`SELECT nope`, (error) => error.code === "P2010");
});

await run(async () => {
  await prisma?.$disconnect();
  await plain("DROP SCHEMA IF EXISTS prisma CASCADE");
});
