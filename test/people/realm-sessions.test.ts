import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { personAccountName } from "../../src/accounts/people/removal.ts";
import type { PersonSession } from "../../src/shared/contracts/console-session.ts";

const HOUR_MS = 3_600_000;

it("a login through a company's identity provider keeps the person's other sessions", async () => {
  const personId = `per_${crypto.randomUUID()}`;
  const session = (realm?: string): PersonSession => ({
    kind: "person",
    personId,
    memberId: null,
    orgId: null,
    issuer: "local",
    ...(realm !== undefined && { realm }),
    openedAt: Date.now(),
    freshAt: Date.now(),
    freshBy: "exchange",
    browser: "Firefox",
  });
  const objectOf = (realm?: string) =>
    env.CONSOLE_SESSION.getByName(personAccountName(personId, realm));
  const expiresAt = Date.now() + HOUR_MS;
  const own = objectOf();
  expect(await own.open("own", session(), expiresAt)).toMatchObject({ ok: true });
  const realm = crypto.randomUUID();
  for (let count = 0; count < 25; count++) {
    await objectOf(realm).open(`company ${count}`, session(realm), expiresAt);
  }
  expect(await own.enter("own", true)).toMatchObject({ ok: true });
  expect(await own.open("another", session(), expiresAt)).toMatchObject({ ok: true });
});
