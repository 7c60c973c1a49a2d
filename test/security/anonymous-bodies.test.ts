import { expect, it } from "vitest";
import { ADMIN_TOKEN, bindingsWith, chat, openAccount, send } from "../contract/client.ts";
import { pageHeaders, tryLogin } from "../contract/console-client.ts";

const TAG = "0".repeat(64);
const nowS = (): number => Math.floor(Date.now() / 1000);

/** Returns a body that doesn't end before `end`, and whether it was read. */
function slowBody(end: Promise<unknown>) {
  const seen = { isRead: false };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        seen.isRead = true;
        await end;
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, seen };
}

it.each([
  ["/console/api/people/invitation/preview", {}],
  ["/console/api/login/start", {}],
  ["/console/api/login", {}],
  ["/console/api/as", {}],
  ["/payments/stripe", { "stripe-signature": `t=${nowS()},v1=${TAG}` }],
])(
  "the endpoint %s rejects slow bodies beyond the endpoint's memory limit, and other requests succeed",
  async (path, own) => {
    const bindings = bindingsWith({}); // for a separate isolate
    const { orgId, key } = await openAccount();
    const end = Promise.withResolvers<void>();
    const statuses: number[] = [];
    const open = Array.from({ length: 300 }, async (_, n) => {
      const headers = { ...pageHeaders(), ...own, "cf-connecting-ip": `198.51.100.${n}` };
      const body = slowBody(end.promise).stream;
      statuses.push((await send(path, { method: "POST", headers, body, bindings })).status);
    });
    await expect.poll(() => statuses.length).toBeGreaterThan(40);
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(statuses.length).toBeLessThan(60); // 8 MiB are enough for about 250 requests
    const credit = { amount_micro: 1, reference: crypto.randomUUID() };
    const paid = `/admin/v1/orgs/${orgId}/credits`;
    expect((await send(paid, { key: ADMIN_TOKEN, body: credit, bindings })).status).toBe(200);
    expect((await chat(key, {}, { bindings })).status).toBe(200);
    end.resolve();
    await Promise.all(open);
    expect((await tryLogin(key, {}, bindings)).status).toBe(200);
  },
);

it.each(["", `v1=${TAG}`, `t=${nowS() - 400},v1=${TAG}`, `t=${nowS()}`, `t=${nowS()},v1=made-up`])(
  "POST /payments/stripe rejects the Stripe signature '%s' without reading the body",
  async (header) => {
    const { stream, seen } = slowBody(Promise.resolve());
    const headers = { "stripe-signature": header };
    const sent = { method: "POST", headers, body: stream, bindings: bindingsWith({}) };
    const answer = await send("/payments/stripe", sent);
    expect([answer.status, seen.isRead]).toEqual([400, false]);
  },
);

it("the memory limit for requests without a key treats an IPv6 network as one address", async () => {
  const bindings = bindingsWith({}); // for a separate isolate
  const end = Promise.withResolvers<void>();
  const rejected: string[] = [];
  const sendFrom = async (address: string): Promise<void> => {
    const headers = { ...pageHeaders(), "cf-connecting-ip": address };
    const sent = { method: "POST", headers, body: slowBody(end.promise).stream, bindings };
    if ((await send("/console/api/login/start", sent)).status === 503) rejected.push(address);
  };
  const many = Array.from({ length: 300 }, (_, n) => sendFrom(`2001:db8:1:2::${n.toString(16)}`));
  // The network already uses half of the 8 MiB.
  await expect.poll(() => rejected.length).toBeGreaterThan(150);
  const others = Array.from({ length: 20 }, (_, n) => sendFrom(`2001:db8:1:${n + 3}::1`));
  end.resolve();
  await Promise.all([...many, ...others]);
  expect(rejected.filter((address) => !address.startsWith("2001:db8:1:2::"))).toEqual([]);
});
