import * as z from "zod/mini";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { parsePublicUrl } from "../../shared/public-address.ts";

/** DNS resolvers that must both confirm a domain, so that an attacker must deceive both. */
const RESOLVERS = ["https://cloudflare-dns.com/dns-query", "https://dns.google/resolve"];
const TIMEOUT_MS = 5000;
const BYTES_MAX = 64 * 1024;
const TXT_TYPE = 16;

const PUBLIC_EMAIL_DOMAINS = new Set(
  `gmail.com googlemail.com outlook.com hotmail.com live.com msn.com yahoo.com ymail.com icloud.com me.com mac.com aol.com
   gmx.de gmx.net gmx.com gmx.at gmx.ch web.de t-online.de freenet.de posteo.de mailbox.org proton.me protonmail.com pm.me
   tutanota.com tuta.io fastmail.com hey.com zoho.com mail.com mail.ru yandex.ru yandex.com qq.com 163.com 126.com
   hotmail.co.uk yahoo.co.uk orange.fr wanadoo.fr free.fr laposte.net libero.it`.split(/\s+/),
);

export function parseCompanyDomain(
  text: string,
): { readonly domain: string } | { readonly problem: string } {
  const domain = text.trim().toLowerCase().replace(/\.$/, "");
  const url = parsePublicUrl(`https://${domain}/`);
  const isPublic = typeof url !== "string" && url.hostname === domain;
  if (!isPublic) return { problem: "must be an internet domain" };
  return PUBLIC_EMAIL_DOMAINS.has(domain) ? { problem: "is a public email provider" } : { domain };
}

export function domainProofRecord(domain: string, nonce: string) {
  return { name: `_turnpike-challenge.${domain}`, value: `turnpike-domain-verification=${nonce}` };
}

type ProofResult = "there" | "missing" | "away";

/** Checks whether both resolvers return the TXT record. Never throws. */
export async function checkDomainProof(domain: string, nonce: string): Promise<ProofResult> {
  const { name, value } = domainProofRecord(domain, nonce);
  const proofs = await Promise.all(
    RESOLVERS.map(async (resolver): Promise<ProofResult> => {
      const texts = await queryTextRecords(resolver, name).catch(() => null);
      if (texts === null) return "away";
      return texts.includes(value) ? "there" : "missing";
    }),
  );
  if (proofs.includes("away")) return "away";
  return proofs.every((one) => one === "there") ? "there" : "missing";
}

const dnsResponseSchema = z.object({
  Status: z.int(),
  TC: z.boolean(),
  Answer: z.optional(z.array(z.object({ name: z.string(), type: z.int(), data: z.string() }))),
});
const NO_SUCH_NAME = 3;

async function queryTextRecords(resolver: string, name: string): Promise<readonly string[] | null> {
  const response = await fetch(`${resolver}?name=${encodeURIComponent(name)}&type=TXT`, {
    headers: { accept: "application/dns-json" },
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = response.status === 200 ? await readBoundedText(response, BYTES_MAX) : null;
  const parsed = text === null ? null : z.safeParse(dnsResponseSchema, JSON.parse(text));
  if (parsed === null || !parsed.success || parsed.data.TC) return null;
  const { Status: status, Answer: records = [] } = parsed.data;
  if (status === NO_SUCH_NAME) return [];
  if (status !== 0) return null;
  const isQueriedName = (recordName: string): boolean =>
    recordName.toLowerCase().replace(/\.$/, "") === name;
  return records
    .filter((one) => one.type === TXT_TYPE && isQueriedName(one.name))
    .map(({ data }) => unquoteText(data));
}

function unquoteText(data: string): string {
  if (!data.startsWith('"')) return data;
  const strings = data.matchAll(/"((?:[^"\\]|\\.)*)"/g);
  return [...strings]
    .map(([, text = ""]) =>
      text.replaceAll(/\\(\d{3}|.)/g, (_, one: string) =>
        one.length === 3 ? String.fromCharCode(Number(one)) : one,
      ),
    )
    .join("");
}
