/**
 * The gateway for browser tests with many end users. POST /__test/crowd writes end users with a
 * day's spend directly into a wallet's tables.
 */
import worker, * as gateway from "../../src/index.ts";

// oxlint-disable-next-line no-barrel-file -- its other objects are this Worker's
export * from "../../src/index.ts";
export class Wallet extends gateway.Wallet {
  /** Adds end users named `user_000001` and so on. */
  async crowd(count: number): Promise<void> {
    const day = new Date().toISOString().slice(0, 10);
    const { sql } = this.ctx.storage;
    const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    sql.exec(
      `INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day, daily_spend,
        created_at, changed)
      ${numbers} SELECT printf('crowd-%06d', i), printf('user_%06d', i), 0.8, ?2, i, ?3, i, ?4, 0 FROM n`,
      count,
      day.slice(0, 7),
      day,
      Date.now(),
    );
    sql.exec(
      `INSERT INTO totals (dimension, day, name, requests, prompt_tokens, completion_tokens, cost, changed)
      ${numbers} SELECT 'user', ?2, printf('user_%06d', i), 1, 1, 1, i, 0 FROM n`,
      count,
      day,
    );
    await this.ctx.storage.sync();
  }

  /** Ends this instance, so that the next one reads the tables. */
  async forget(): Promise<void> {
    await this.ctx.storage.sync();
    this.ctx.abort("filled");
  }
}
type Crowd = { readonly org_id: string; readonly count: number };

export default {
  ...worker,
  async fetch(request, env, ctx) {
    if (new URL(request.url).pathname !== "/__test/crowd") return worker.fetch(request, env, ctx);
    const { org_id, count } = await request.json<Crowd>();
    const wallet = env.WALLET.getByName(org_id) as unknown as Pick<Wallet, "crowd" | "forget">;
    await wallet.crowd(count);
    await Promise.allSettled([wallet.forget()]);
    return Response.json({});
  },
} satisfies ExportedHandler<Env>;
