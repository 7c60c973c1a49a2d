import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { consoleAccountName } from "../../shared/console-account.ts";
import { syncWithDatabase } from "../../shared/sync-with-database.ts";
import {
  IDEMPOTENCY_RETENTION_MS,
  hashIdempotentRequest,
  readIdempotencyKey,
} from "../../shared/idempotency.ts";
import type { IdempotencyHashes, IdempotentRequest } from "../../shared/idempotency.ts";
import { keySecretsToJson } from "../../shared/key.ts";
import { callObject } from "../../shared/reach-object.ts";
import { mintRotatedSecret } from "./api-key.ts";
import type { MintedKey } from "./api-key.ts";
import type { StoredKey } from "./stored-key.ts";
import { ACTIVE_SECRETS_MAX } from "../../shared/key-uses.store.ts";
import { notifyPeersOfRevocations } from "./revocation.ts";
import type { KeyServices } from "./revocation.ts";
import {
  insertKeySecret,
  isCallerActive,
  listKeySecrets,
  KEY_ROTATIONS_PER_DAY_MAX,
} from "./secrets.store.ts";
import type { NewKeySecret, KeySecretRow } from "./secrets.store.ts";

const OVERLAP_MAX_S = 30 * 86_400;
const ATTEMPTS_MAX = 5;

export const rotationSchema = z.object({
  overlap_seconds: z.int().check(z.minimum(0), z.maximum(OVERLAP_MAX_S)),
  end_sessions: z.optional(z.boolean()),
});

export type KeyRotationRequest = Pick<Rotation, "overlapMs" | "endsSessions" | "idempotency">;

/**
 * Parses a request to rotate a key. Requires an Idempotency-Key, so that a lost response doesn't
 * lose the secret.
 */
export async function parseKeyRotation({
  header,
  body,
  named,
}: {
  readonly header: string | null;
  readonly body: unknown;
  readonly named: IdempotentRequest;
}): Promise<Result<KeyRotationRequest>> {
  const name = readIdempotencyKey(header ?? undefined);
  if (!name.ok) return name;
  if (name.value === null) {
    return invalid("A rotation requires the header 'Idempotency-Key'.", "Idempotency-Key");
  }
  const fields = parseFields(rotationSchema, [], body);
  if (!fields.ok) return fields;
  const idempotency = await hashIdempotentRequest(name.value, named);
  const { overlap_seconds: overlap, end_sessions: endsSessions = false } = fields.value;
  return success({ overlapMs: overlap * 1000, endsSessions, idempotency });
}

/**
 * A parsed rotation request. `caller` is the calling key, which must be active, or null for an
 * operator.
 */
type Rotation = {
  readonly find: () => Promise<StoredKey | null>;
  readonly caller: NewKeySecret["caller"];
  readonly overlapMs: number;
  readonly endsSessions: boolean;
  readonly idempotency: IdempotencyHashes;
};

/** A rotated key. `key` is the new secret. All other secrets end by `retiresAt` (Unix ms). */
export type RotatedKey = {
  readonly storedKey: StoredKey;
  readonly key: string;
  readonly retiresAt: number;
};

export function rotatedKeyView<Shown extends object>(
  { key, retiresAt }: RotatedKey,
  record: Shown,
) {
  return { ...record, key, others_end_at: timestamp(retiresAt) };
}

/**
 * Adds a secret to a key in D1, the key object and the wallet, then notifies other regions. Ended
 * secrets fail immediately. A retry completes a partial rotation.
 */
export async function rotateKeyEverywhere(
  services: KeyServices,
  rotation: Rotation,
): Promise<Result<RotatedKey>> {
  const newSecret = await insertSecret(services, rotation);
  if (!newSecret.ok) return newSecret;
  const storedKey = await rotation.find();
  if (storedKey === null) return noSuchKey();
  // 2. Update the key object, then the wallet. Both then reject ended secrets.
  const { secret, key } = newSecret.value;
  const homeKey = await notifyHomeObjects(services, storedKey, {
    ...rotation,
    number: secret.number,
  });
  if (!homeKey.ok) return homeKey;
  const closed = await closeConsoleSessions(services, storedKey, rotation);
  if (!closed.ok) return closed;
  // 3. Queue durable notices for other regions.
  const ended = (homeKey.value.secrets ?? []).flatMap(({ hash, retiresAt }) =>
    retiresAt === null ? [] : [{ keyHash: hash, revokedAt: retiresAt, root: storedKey.keyHash }],
  );
  const peerNotices = await notifyPeersOfRevocations(services, storedKey.scope, ended);
  if (!peerNotices.ok) return peerNotices;
  return success<RotatedKey>({
    storedKey: homeKey.value,
    key,
    retiresAt: secret.created_at + rotation.overlapMs,
  });
}

function closeConsoleSessions(
  { consoles }: KeyServices,
  { keyHash }: StoredKey,
  { endsSessions }: Rotation,
): Promise<Result<null>> {
  if (!endsSessions) return Promise.resolve(success(null));
  return callObject(() => consoles(consoleAccountName(keyHash)).close(null));
}

function noSuchKey(): Result<never> {
  return refuse({
    kind: "not_found",
    message: "There is no active key with this ID, or you can't rotate it.",
  });
}

type NewSecret = {
  readonly secret: Pick<KeySecretRow, "number" | "created_at">;
  readonly key: string;
};

async function insertSecret(
  services: KeyServices,
  { find, caller, overlapMs, endsSessions, idempotency }: Rotation,
): Promise<Result<NewSecret>> {
  const { db, keySecrets, now } = services;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const storedKey = await find();
    if (storedKey === null || storedKey.revokedAt !== null) return noSuchKey();
    const secrets = await listKeySecrets(db, storedKey.keyId);
    const earlier = findEarlierSecret(secrets, idempotency, now);
    if (earlier !== null) return repeatRotation(services, storedKey, { earlier, idempotency });
    const refusal = refuseTooManySecrets(secrets, { now, retiresAt: now + overlapMs });
    if (refusal !== null) return refusal;
    const [signedBy] = keySecrets;
    if (signedBy === undefined) return refuse({ kind: "misconfigured" });
    const number = (secrets[0]?.number ?? 0) + 1;
    const source = { number, idempotency, signedBy };
    const { key, ...minted } = await mintSecret(services, storedKey, source);
    const isInserted = await insertKeySecret(db, {
      ...minted,
      of: storedKey,
      number,
      signedBy: signedBy.id,
      idempotency,
      caller,
      now,
      retiresAt: now + overlapMs,
      actor: services.actor,
      endsSessions,
    });
    if (isInserted) return success({ secret: { number, created_at: now }, key });
    if (!(await isCallerActive(db, caller, now))) return refuse({ kind: "invalid_api_key" });
  }
  return refuse({ kind: "overloaded" });
}

function findEarlierSecret(
  secrets: readonly KeySecretRow[],
  { name }: IdempotencyHashes,
  now: number,
): KeySecretRow | null {
  const isKnown = (one: KeySecretRow): boolean =>
    one.name === name && now - one.created_at < IDEMPOTENCY_RETENTION_MS;
  return secrets.find(isKnown) ?? null;
}

async function repeatRotation(
  services: KeyServices,
  storedKey: StoredKey,
  {
    earlier,
    idempotency,
  }: { readonly earlier: KeySecretRow; readonly idempotency: IdempotencyHashes },
): Promise<Result<NewSecret>> {
  if (earlier.body !== idempotency.body) return refuse({ kind: "idempotency_mismatch" });
  const signedBy = services.keySecrets.find(({ id }) => id === earlier.signed_by);
  if (signedBy === undefined) {
    return refuse({ kind: "idempotency_replay", made: "key", id: storedKey.keyId });
  }
  const { key } = await mintSecret(services, storedKey, {
    number: earlier.number,
    idempotency,
    signedBy,
  });
  return success({ secret: earlier, key });
}

function mintSecret(
  { region: home }: KeyServices,
  { keyHash: root, scope }: StoredKey,
  of: {
    readonly number: number;
    readonly idempotency: IdempotencyHashes;
    readonly signedBy: KeySecret;
  },
): Promise<MintedKey> {
  const { number, idempotency, signedBy } = of;
  return mintRotatedSecret({ home, scope, root, number, name: idempotency.name, signedBy });
}

function refuseTooManySecrets(
  secrets: readonly KeySecretRow[],
  { now, retiresAt }: { readonly now: number; readonly retiresAt: number },
): Result<never> | null {
  const validSecrets = secrets.filter(
    (one) => Math.min(one.retires_at ?? Infinity, retiresAt) > now,
  );
  const recentSecrets = secrets.filter((one) => now - one.created_at < IDEMPOTENCY_RETENTION_MS);
  if (
    validSecrets.length < ACTIVE_SECRETS_MAX &&
    recentSecrets.length <= KEY_ROTATIONS_PER_DAY_MAX
  ) {
    return null;
  }
  return refuse({
    kind: "conflict",
    message: `A key can't have more than ${ACTIVE_SECRETS_MAX} valid secrets at a time, or more than ${KEY_ROTATIONS_PER_DAY_MAX} new secrets a day.`,
    param: null,
    code: "too_many_secrets",
  });
}

function notifyHomeObjects(
  { register, wallet, actor }: KeyServices,
  storedKey: StoredKey,
  { find, endsSessions, number }: Rotation & Pick<KeySecretRow, "number">,
): Promise<Result<StoredKey>> {
  const sessionsCut = endsSessions ? number : null;
  return syncWithDatabase(storedKey, {
    send: async ({ keyId, keyHash, orgId, secrets }) => {
      await register(keyHash).setSecrets(secrets);
      return wallet(orgId).setKeySecrets(keyHash, secrets, { keyId, actor, sessionsCut });
    },
    reread: find,
    isSame: (one, other) => keySecretsToJson(one.secrets) === keySecretsToJson(other.secrets),
  });
}
