import type { Migration } from "../migrations.ts";

type Bindings = { readonly DB: D1Database; readonly MIGRATIONS: string };

/** Applies missing migrations, each in a transaction, and records them in wrangler's table. */
async function apply({ DB, MIGRATIONS }: Bindings): Promise<void> {
  await DB.exec(
    "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
  );
  const { results } = await DB.prepare("SELECT name FROM d1_migrations").all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  const migrations = JSON.parse(MIGRATIONS) as Migration[];
  for (const { name, queries } of migrations.filter((one) => !applied.has(one.name))) {
    const note = DB.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name);
    await DB.batch([...queries.map((query) => DB.prepare(query)), note]);
  }
}

export default {
  async fetch(_request, bindings) {
    try {
      await apply(bindings);
      return new Response("");
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
} satisfies ExportedHandler<Bindings>;
