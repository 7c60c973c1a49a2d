import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parsePublicUrl } from "../../src/shared/public-address.ts";
import { parseWebhookUrl } from "../../src/events/webhooks/receiver-settings.ts";
import { effortFor } from "../effort.ts";

const PRIVATE =
  "localhost local internal intranet lan home corp home.arpa localdomain test invalid example onion";
const privateNames = fc
  .tuple(fc.constantFrom("", "a.", "db.eu-1."), fc.constantFrom(...PRIVATE.split(" ")))
  .map(([front, end]) => front + end);
const bytes = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const wide = (digit: string): string => String.fromCodePoint(0xff10 + Number(digit));
/** One IPv4 address in every notation that a URL parser accepts. */
const ipv4 = fc
  .tuple(bytes, fc.constantFrom("dots", "hex", "octal", "whole", "short", "wide"))
  .map(([[a, b, c, d], how]) => {
    const whole = ((a * 256 + b) * 256 + c) * 256 + d;
    if (how === "hex") return `0x${whole.toString(16)}`;
    if (how === "octal") return [a, b, c, d].map((n) => `0${n.toString(8)}`).join(".");
    if (how === "whole") return String(whole);
    if (how === "short") return `${a}.${(b * 256 + c) * 256 + d}`;
    const dots = `${a}.${b}.${c}.${d}`;
    if (how === "dots") return dots;
    return dots.replaceAll(/\d/g, wide);
  });
const ipv6 = fc.constantFrom("[::1]", "[2606:4700:4700::1111]", "[::ffff:10.0.0.1]", "[fe80::1]");
/** Returns a host in notations that hide its real address. */
const spelled = (hosts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(hosts, fc.boolean(), fc.boolean(), fc.constantFrom("", ".", "..", "...", "。"))
    .map(([host, upper, encoded, dots]) => {
      const cased = upper ? host.toUpperCase() : host;
      const first = (cased.codePointAt(0) ?? 0).toString(16);
      const isLetter = /^[a-z]/i.test(cased);
      return (encoded && isLetter ? `%${first}${cased.slice(1)}` : cased) + dots;
    });
const rest = fc.constantFrom("", "/", "/a?b=c", "//a@b.dev/");
const check = <T>(values: fc.Arbitrary<T>, holds: (value: T) => void): void =>
  fc.assert(fc.property(values, holds), { numRuns: effortFor(300, 20_000) });

it("the check of public addresses rejects every spelling of a private address or name", () => {
  check(fc.tuple(spelled(fc.oneof(ipv4, ipv6, privateNames)), rest), ([host, path]) => {
    expect(parsePublicUrl(`https://${host}${path}`)).toBeTypeOf("string");
    expect(parseWebhookUrl(`https://${host}${path}`, true)).toBeTypeOf("string");
  });
});

it("the check of public addresses accepts only port 443, no user, and at most one final dot", () => {
  const names = fc.tuple(
    fc.stringMatching(/^[a-z][a-z\d]{0,20}$/),
    fc.constantFrom("dev", "co.uk"),
  );
  check(fc.tuple(names, rest), ([[name, end], path]) => {
    const host = `${name}.${end}`;
    for (const good of [host, `${host}.`, `${host}:443`]) {
      expect(parsePublicUrl(`https://${good}${path}`)).toBeInstanceOf(URL);
    }
    const bad = [`${host}..`, `.${host}`, `${name}..${end}`, `${host}:8443`, `${host}:80`];
    for (const wrong of [...bad, `u@${host}`, `:p@${host}`, name, `${"a".repeat(64)}.${end}`]) {
      expect(parsePublicUrl(`https://${wrong}${path}`)).toBeTypeOf("string");
    }
    expect(parsePublicUrl(`http://${host}${path}`)).toBeTypeOf("string");
  });
});

it("a webhook's URL is stored in its parsed form, without control characters", () => {
  check(fc.string({ unit: "binary", maxLength: 40 }), (path) => {
    const url = parseWebhookUrl(`https://hooks.turnpike.dev/${path}`, false);
    if (typeof url === "string") return;
    expect(url.href).toMatch(/^https:\/\/hooks\.turnpike\.dev\/[!-~]*$/);
    expect(url.href.length).toBeLessThanOrEqual(2048);
    expect(parseWebhookUrl(url.href, false)).toEqual(url);
  });
  for (const odd of ["\u0001", "\t", "\n", "\u007f", "\u0085", "\u2028", " "]) {
    expect(parseWebhookUrl(`https://hooks.turnpike.dev/a${odd}b`, false)).toBe("must be a URL");
  }
  expect(parseWebhookUrl(`https://hooks.turnpike.dev/${"é".repeat(400)}`, false)).toBe(
    "must have at most 2048 characters",
  );
});
