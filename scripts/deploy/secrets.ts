import { askWrangler, namesIn } from "./ask-wrangler.ts";
import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { requiredSecrets } from "./settings.ts";
import type { Settings } from "./settings.ts";

const NEXT = /^PEER_(?:IN|OUT)_[A-Z]+_NEXT$/;

/** Names of a Worker's secrets, or null if unknown. */
export type SecretNames = ReadonlySet<string> | null;

/** Reads the names through wrangler. A new Worker has none. */
export async function askCloudflare(env: string, configFile: string): Promise<SecretNames> {
  const given = ["secret", "list", "--env", env, "--format", "json", "--config", configFile];
  const { ok, out, err } = await askWrangler(given);
  if (ok) {
    const names = namesIn(out);
    return names === null ? null : new Set(names);
  }
  return /Worker "[^"]*"(?: \(env: \w+\))? not found/.test(err) ? new Set() : null;
}

/** Reports missing required secrets, and facts that only a person can check. */
export function secretFindings(settings: Settings, known: SecretNames): Finding[] {
  const { env, config } = settings;
  const required = requiredSecrets(config);
  const always = note(
    "KEY_SECRETS",
    "must be the same in every region, and this check can't read it",
    "Set it in every region from one place. Test it: a global key from one region works in the other. If the values differ, it gets 401.",
  );
  if (known === null) {
    const list = `npx wrangler secret list --env ${env}`;
    return [
      warning(
        "secrets",
        "could not be listed, because Cloudflare could not be called",
        `Run npx wrangler login and try again, or run this yourself: ${list}. It must list ${required.join(", ")}. Then pass the listed names with --set.`,
      ),
      always,
    ];
  }
  const missing = required.filter((name) => !known.has(name));
  const rotating = [...known].filter((name) => NEXT.test(name));
  return [
    ...missing.map((name) => error(name, "is not set", remedyFor(name, settings))),
    ...rotating.map((name) =>
      note(
        name,
        "is set: a rotation is in progress",
        "Complete it as described in docs/deploy.md.",
      ),
    ),
    always,
  ];
}

function remedyFor(name: string, { env, region }: Settings): string {
  const put = `npx wrangler secret put ${name} --env ${env}`;
  const [, direction, peer] = /^PEER_(OUT|IN)_([A-Z]+)$/.exec(name) ?? [];
  if (direction !== undefined && peer !== undefined) {
    const there = `PEER_${direction === "OUT" ? "IN" : "OUT"}_${region.toUpperCase()}`;
    return `${put}, with the value of ${there} in ${peer.toLowerCase()}. Create the value with openssl rand -hex 32.`;
  }
  if (name === "KEY_SECRETS") {
    return `${put}, with the value of the other region. For the first region, use "a:" followed by the output of openssl rand -hex 32.`;
  }
  return `${put}, with the output of openssl rand -hex 32. Store the value safely.`;
}
