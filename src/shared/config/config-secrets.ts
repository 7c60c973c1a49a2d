import { OPERATOR_ROLES } from "./config-people.ts";
import type { OperatorRole } from "./config-people.ts";
import type { Region } from "../regions.ts";
import type { ConfigVariables } from "./config-variables.ts";

const SECRET_CHARACTERS_MIN = 32;
/** Minimum number of different characters in a secret. A repeated `changeme` has 7. */
const DIFFERENT_CHARACTERS_MIN = 9;
const SECRET = `${SECRET_CHARACTERS_MIN}+ random characters`;

function secretProblem(secret: string, sandbox: boolean): string | null {
  const hasEnoughVariety = sandbox || new Set(secret).size >= DIFFERENT_CHARACTERS_MIN;
  return hasEnoughVariety && secret.length >= SECRET_CHARACTERS_MIN ? null : `must be ${SECRET}`;
}

/** A secret of KEY_SECRETS. Keys signed with it contain its ID. */
export type KeySecret = { readonly id: string; readonly secret: string };

export type OperatorToken = {
  readonly name: string;
  readonly role: OperatorRole;
  readonly token: string;
};

export type PeerSecret = { readonly sender: Region; readonly secret: string };

export type PeerConfig = {
  readonly region: Region;
  /** An origin without a trailing slash: `https://us.example.com`. */
  readonly url: string;
  readonly signing: PeerSecret;
  readonly accepted: readonly PeerSecret[];
};

/** Parses KEY_SECRETS. The first entry signs new keys. */
export function parseKeySecrets(variables: ConfigVariables): KeySecret[] {
  const { text, sandbox } = variables;
  const addProblem = (problem: string): void => variables.addProblem("KEY_SECRETS", problem);
  const raw = text("KEY_SECRETS");
  if (raw === "") addProblem("must be set, as a:<secret>,b:<secret>; the first mints keys");
  const secrets = raw === "" ? [] : raw.split(",").map((entry) => parseKeySecret(entry, sandbox));
  const valid = secrets.filter((secret) => secret !== null);
  if (valid.length !== secrets.length) {
    addProblem(`each entry must be one base62 character, a colon and ${SECRET}`);
  }
  const ids = new Set(valid.map((secret) => secret.id));
  if (ids.size !== valid.length) addProblem("names an id twice");
  return valid;
}

function parseKeySecret(entry: string, sandbox: boolean): KeySecret | null {
  const [, id, secret] = /^\s*([0-9A-Za-z]):(\S+)\s*$/.exec(entry) ?? [];
  if (id === undefined || secret === undefined) return null;
  return secretProblem(secret, sandbox) === null ? { id, secret } : null;
}

/**
 * Parses the operators: `admin` from ADMIN_TOKEN, others from ADMIN_TOKENS. Names and tokens must
 * be unique.
 */
export function parseOperators({ text, sandbox, addProblem }: ConfigVariables): OperatorToken[] {
  const admin: OperatorToken = { name: "admin", role: "all", token: text("ADMIN_TOKEN") };
  const tokenProblem = secretProblem(admin.token, sandbox);
  if (tokenProblem !== null) addProblem("ADMIN_TOKEN", tokenProblem);
  const raw = text("ADMIN_TOKENS");
  const named = raw === "" ? [] : raw.split(",").map((entry) => parseOperator(entry, sandbox));
  const valid = named.filter((operator) => operator !== null);
  if (valid.length !== named.length) {
    addProblem(
      "ADMIN_TOKENS",
      `each entry must be a name of a-z, 0-9, - and _, if need be / and one of ${OPERATOR_ROLES.join(", ")}, a colon and ${SECRET}`,
    );
  }
  const operators = [admin, ...valid];
  if (new Set(operators.map(({ name }) => name)).size !== operators.length) {
    addProblem("ADMIN_TOKENS", "names an operator twice; ADMIN_TOKEN is that of admin");
  }
  if (new Set(operators.map(({ token }) => token)).size !== operators.length) {
    addProblem("ADMIN_TOKENS", "gives two operators the same token");
  }
  return operators;
}

function parseOperator(entry: string, sandbox: boolean): OperatorToken | null {
  const [, name, named = "all", token] =
    /^\s*([a-z0-9][a-z0-9_-]{0,39})(?:\/([a-z]+))?:(\S+)\s*$/.exec(entry) ?? [];
  const role = OPERATOR_ROLES.find((one) => one === named);
  if (name === undefined || token === undefined || role === undefined) return null;
  return secretProblem(token, sandbox) === null ? { name, role, token } : null;
}

/**
 * Parses PEERS and their secrets. PEER_OUT_<R> signs messages to region R, and PEER_IN_<R> verifies
 * messages from R. `_NEXT` is for rotation. All secrets must differ, so that messages can't be
 * replayed to their sender.
 */
export function parsePeers(
  entries: readonly { readonly region: Region; readonly url: string }[],
  region: Region,
  variables: ConfigVariables,
): PeerConfig[] {
  const { addProblem } = variables;
  const regions = entries.map((entry) => entry.region);
  if (regions.includes(region)) addProblem("PEERS", "names this region itself");
  if (new Set(regions).size !== regions.length) addProblem("PEERS", "names a region twice");
  const secretUses = new Map<string, string>();
  return entries.map((entry) => {
    const name = entry.region.toUpperCase();
    const outgoing = parsePeerSecrets(`PEER_OUT_${name}`, secretUses, variables);
    const incoming = parsePeerSecrets(`PEER_IN_${name}`, secretUses, variables);
    return {
      region: entry.region,
      url: originOf(entry.url, variables),
      signing: { sender: region, secret: outgoing.at(-1) ?? "" },
      accepted: incoming.map((secret) => ({ sender: entry.region, secret })),
    };
  });
}

function parsePeerSecrets(
  name: string,
  secretUses: Map<string, string>,
  { sandbox, text, addProblem }: ConfigVariables,
): readonly string[] {
  const variables = text(`${name}_NEXT`) === "" ? [name] : [name, `${name}_NEXT`];
  for (const variable of variables) {
    const secret = text(variable);
    const other = secretUses.get(secret) ?? name;
    secretUses.set(secret, other);
    const problem = secretProblem(secret, sandbox);
    if (problem !== null) {
      addProblem(variable, problem);
    } else if (other !== name) {
      addProblem(variable, `must differ from ${other} and its _NEXT`);
    }
  }
  return [...new Set(variables.map(text))];
}

/** Returns a peer's origin. Rejects a URL with a path, because signatures cover request paths. */
function originOf(text: string, { sandbox, addProblem }: ConfigVariables): string {
  const url = new URL(text);
  const isLocal = sandbox && url.protocol === "http:" && isLoopback(url.hostname);
  if (url.protocol !== "https:" && !isLocal) {
    addProblem("PEERS", "must name https URLs; http is for loopback while SANDBOX is on");
  } else if (url.href !== `${url.origin}/`) {
    addProblem("PEERS", "must name origins, without user, path, query or fragment");
  }
  return url.origin;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}
