import { readFileSync } from "node:fs";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions, unstable_splitSqlQuery } from "wrangler";

export type RegionName = "eu" | "us";
export type RegionOptions = {
  region: RegionName;
  port: number;
  peers: { region: RegionName; url: string }[];
  directory?: string;
  code: string;
};

/** One region on real workerd. */
export async function startRegion(
  options: RegionOptions,
): Promise<{ url: string; miniflare: Miniflare }> {
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    new URL("../wrangler.toml", import.meta.url).pathname,
    options.region,
  );
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: options.port,
      cf: false,
      log: new Log(LogLevel.WARN, { prefix: options.region }),
      ...(options.directory === undefined ? {} : { resourcePersistencePath: options.directory }),
      unsafeTriggerHandlers: true,
      workers: [
        {
          ...workerOptions,
          name: `turnpike-${options.region}`,
          bindings: {
            ...(workerOptions["bindings"] as Record<string, string>),
            JURISDICTION: "",
            PEERS: JSON.stringify(options.peers),
            KEY_SECRETS: `a:${"k".repeat(32)}`,
            ADMIN_TOKEN: "a".repeat(32),
          },
          modules: [{ type: "ESModule", path: "index.js", contents: options.code }],
        },
      ],
    }),
  );
  const url = String(await miniflare.ready);
  const db = await miniflare.getD1Database("DB", `turnpike-${options.region}`);
  const schema = readFileSync(new URL("../schema.sql", import.meta.url), "utf8");
  await db.batch(unstable_splitSqlQuery(schema).map((statement) => db.prepare(statement)));
  return { url, miniflare };
}
