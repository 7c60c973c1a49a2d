import { env } from "cloudflare:workers";
import { createExecutionContext, listDurableObjectIds } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { randomBase62 } from "../../src/shared/id.ts";
import { countedBindings } from "./counted-bindings.ts";
import { effortFor } from "../effort.ts";
import { recordMeasured } from "../measured.ts";

const FORGED = effortFor(2000, 100_000);
/**
 * Malformed keys, keys with an invalid checksum, and prefixes of every kind. `a` is the ID of the
 * current secret.
 */
const MAKERS: readonly (() => string)[] = [
  () => `svc_sk_eu_live_a${randomBase62(39)}`,
  () => `svc_sk_us_live_a${randomBase62(39)}`,
  () => `svc_sk_gbl_eu_live_a${randomBase62(39)}`,
  () => `svc_sk_gbl_us_live_${randomBase62(40)}`,
  () => randomBase62(55),
];

it(`the gateway rejects ${FORGED} forged keys with 401, without calling an object or querying the database`, async () => {
  const silence = vi.spyOn(console, "log").mockImplementation(() => undefined);
  const before = await listDurableObjectIds(env.KEY_REGISTER);
  const counted = countedBindings();
  const context = createExecutionContext();
  let refused = 0;
  for (let i = 0; i < FORGED; i++) {
    const authorization = `Bearer ${MAKERS[i % MAKERS.length]?.() ?? ""}`;
    const request = new Request("https://eu.test/v1/models", { headers: { authorization } });
    const response = await app.fetch(request, counted.bindings, context);
    if (response.status === 401) refused++;
  }
  recordMeasured({ forged: refused, operations: counted.objects + counted.statements });
  expect(refused).toBe(FORGED);
  expect(counted).toMatchObject({ objects: 0, statements: 0 });
  expect(await listDurableObjectIds(env.KEY_REGISTER)).toHaveLength(before.length);
  silence.mockRestore();
});
