// What the Node programs share: named steps, printed as they pass (steps.py says the same for Python).
import assert from "node:assert/strict";

const url = new URL(process.argv[2]);
export const address = {
  host: url.hostname,
  port: Number(url.port || 5432),
  user: url.username || "postgres",
  database: url.pathname.slice(1) || "postgres",
};
const steps = [];

export function step(name, body) {
  steps.push([name, body]);
}

export async function run(close) {
  let failed = false;
  for (const [name, body] of steps) {
    try {
      await body();
      console.log(`ok ${name}`);
    } catch (error) {
      failed = true;
      console.log(`FAILED ${name}: ${error.stack}`);
    }
  }
  await close();
  process.exit(failed ? 1 : 0);
}

export { assert };
