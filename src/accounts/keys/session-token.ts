import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import type { RequestCredential, VerifiedKey } from "../../shared/caller.ts";
import { ID_CHARACTERS, mintId, creationTimeOfId } from "../../shared/id.ts";
import { keyHashSchema } from "../../shared/key.ts";
import type { Budget } from "../../shared/budgets.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { micros } from "../../shared/money.ts";
import { policySchema } from "../../shared/policy.ts";
import { findRegion, REGIONS } from "../../shared/regions.ts";
import type { Session } from "../../shared/session.ts";
import { encodeBase62, isSameSecret, computeHmac } from "./api-key.ts";
import type { KeyScope } from "../../shared/key.ts";
import type { Region } from "../../shared/regions.ts";

export const SESSION_TOKEN_PREFIX = "svc_st_";
export const SESSION_TOKEN_LENGTH_MAX = 4096;
const SESSION_ID_PREFIX = "ses_";
const OWNER_TAG_CHARACTERS = 8;
/** Number of base64url characters for 32 bytes. */
const MAC_CHARACTERS = 43;
const TOKEN_PATTERN = new RegExp(
  `^${SESSION_TOKEN_PREFIX}(gbl_)?(${REGIONS.join("|")})_([0-9A-Za-z])([\\w-]+)([\\w-]{${MAC_CHARACTERS}})$`,
);

const nonNegativeInt = z.int().check(z.minimum(0));
const nullableTexts = z.nullable(z.array(z.string()));
const sessionPayloadSchema = z.object({
  id: z.string(),
  made: nonNegativeInt,
  cut: z._default(nonNegativeInt, 0),
  from: nonNegativeInt,
  to: nonNegativeInt,
  user: z.nullable(z.string()),
  budget: z.nullable(nonNegativeInt),
  models: nullableTexts,
  policy: z.optional(policySchema),
  rpm: z.nullable(nonNegativeInt),
  budgets: z.optional(z.string()),
  origins: nullableTexts,
  hold: z.exactOptional(z.literal(true)),
  tags: z.exactOptional(z.record(z.string(), z.string())),
});
const tokenPayloadSchema = z.object({ ...sessionPayloadSchema.shape, key: keyHashSchema });

function sessionToPayload(session: Session): z.infer<typeof sessionPayloadSchema> {
  const { id, madeAt, cut, createdAt, expiresAt, endUser, budgetMicro, rpmLimit } = session;
  return {
    id,
    made: madeAt,
    cut,
    from: createdAt,
    to: expiresAt,
    user: endUser,
    budget: budgetMicro,
    models: session.allowedModels === null ? null : [...session.allowedModels],
    ...(session.policy !== undefined && { policy: session.policy }),
    rpm: rpmLimit,
    ...(session.budgets !== undefined && { budgets: JSON.stringify(session.budgets) }),
    origins: session.origins === null ? null : [...session.origins],
    ...(session.mayHold === true && { hold: true }),
    ...(session.tags !== undefined && { tags: session.tags }),
  };
}

function sessionFromPayload(payloadFields: z.infer<typeof sessionPayloadSchema>): Session {
  return {
    id: payloadFields.id,
    madeAt: payloadFields.made,
    cut: payloadFields.cut,
    createdAt: payloadFields.from,
    expiresAt: payloadFields.to,
    endUser: payloadFields.user,
    budgetMicro: payloadFields.budget === null ? null : micros(payloadFields.budget),
    allowedModels: payloadFields.models,
    ...(payloadFields.policy !== undefined && { policy: payloadFields.policy }),
    rpmLimit: payloadFields.rpm,
    ...(payloadFields.budgets !== undefined && {
      budgets: parseStoredJson<readonly Budget[]>(payloadFields.budgets),
    }),
    origins: payloadFields.origins,
    ...(payloadFields.hold === true && { mayHold: true }),
    ...(payloadFields.tags !== undefined && { tags: payloadFields.tags }),
  };
}

/** The key and secrets that sign a session token. */
export type SessionSigner = {
  readonly home: Region;
  readonly scope: KeyScope;
  readonly keyHash: string;
  readonly orgId: string;
  readonly secrets: readonly KeySecret[];
};
export type MintedSession = { readonly session: Session; readonly token: string };

/**
 * Creates a session without storing it. The token contains the limits, so a full HMAC-SHA-256
 * protects it.
 */
export async function mintSession(
  { home, scope, keyHash, orgId, secrets }: SessionSigner,
  terms: Omit<Session, "id">,
): Promise<MintedSession> {
  const [secret] = secrets;
  if (secret === undefined) throw new Error("minting a session needs a secret");
  const idStem = mintId(SESSION_ID_PREFIX, terms.createdAt);
  const id =
    idStem + (await ownerTag(secret, idStem, keyHash)) + (await ownerTag(secret, idStem, orgId));
  const session = { ...terms, id };
  const bytes = encoder.encode(JSON.stringify({ ...sessionToPayload(session), key: keyHash }));
  const text = bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  const global = scope === "global" ? "gbl_" : "";
  const untagged = `${SESSION_TOKEN_PREFIX}${global}${home}_${secret.id}${text}`;
  return { session, token: untagged + (await macOf(secret, untagged)) };
}

/** Returns a valid token's session and key, without I/O. */
export async function verifySession(
  token: string,
  secrets: readonly KeySecret[],
): Promise<(VerifiedKey & { readonly shown: { readonly session: Session } }) | null> {
  if (token.length > SESSION_TOKEN_LENGTH_MAX) return null;
  const match = TOKEN_PATTERN.exec(token);
  if (match === null) return null;
  const [, global, name, secretId, text = "", mac = ""] = match;
  const home = findRegion(name);
  const secret = secrets.find(({ id }) => id === secretId);
  if (home === undefined || secret === undefined) return null;
  if (!isSameSecret(mac, await macOf(secret, token.slice(0, -MAC_CHARACTERS)))) return null;
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  const payloadFields = tokenPayloadSchema.safeParse(JSON.parse(decoder.decode(bytes)));
  if (!payloadFields.success) return null;
  const scope = global === undefined ? "regional" : "global";
  return {
    hash: payloadFields.data.key,
    home,
    scope,
    shown: { session: sessionFromPayload(payloadFields.data) },
  };
}

export function parseSessionCreationTime(id: string): number | null {
  const length = SESSION_ID_PREFIX.length + ID_CHARACTERS;
  if (!/^\w+$/.test(id) || id.length !== length + 2 * OWNER_TAG_CHARACTERS) return null;
  return creationTimeOfId(id.slice(0, length), SESSION_ID_PREFIX);
}

/** Reports whether a session ID belongs to the organization or key. */
export async function isSessionOwnedBy(
  id: string,
  of: { readonly orgId: string } | { readonly keyHash: string },
  secrets: readonly KeySecret[],
): Promise<boolean> {
  const [stem, ofKey, ofOrg] = [id.slice(0, -16), id.slice(-16, -8), id.slice(-8)];
  const [name, owner] = "orgId" in of ? [of.orgId, ofOrg] : [of.keyHash, ofKey];
  const owners = await Promise.all(secrets.map((secret) => ownerTag(secret, stem, name)));
  return owners.includes(owner);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

async function ownerTag(secret: KeySecret, idStem: string, owner: string): Promise<string> {
  const bytes = await computeHmac(secret, "session id", `${idStem}\0${owner}`);
  return encodeBase62(bytes, OWNER_TAG_CHARACTERS);
}

async function macOf(secret: KeySecret, untagged: string): Promise<string> {
  const bytes = await computeHmac(secret, "session", untagged);
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * Schema fields for the presented secret or session in calls between regions. Absent for a key's
 * first secret.
 */
export const presentedSecretFields = {
  secret: z.optional(keyHashSchema),
  session: z.optional(sessionPayloadSchema),
};
type PresentedJson = {
  readonly secret?: string | undefined;
  readonly session?: z.infer<typeof sessionPayloadSchema> | undefined;
};

/**
 * Returns the credential that the client sent, a session or a secret, as JSON for another region.
 */
export function presentedSecretToJson({ shown }: RequestCredential): PresentedJson {
  if (shown?.session !== undefined) return { session: sessionToPayload(shown.session) };
  return shown === undefined ? {} : { secret: shown.secret };
}

export function credentialFromJson(
  hash: string,
  { secret, session }: PresentedJson,
): RequestCredential {
  if (session !== undefined) {
    return createRequestCredential(hash, { session: sessionFromPayload(session) });
  }
  return createRequestCredential(hash, secret === undefined ? undefined : { secret });
}
