import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { consoleAccount } from "../../shared/console-account.ts";
import { syncWithDatabase } from "../../shared/sync-with-database.ts";
import { IDEMPOTENCY_MS, idempotencyOf, readIdempotencyKey } from "../../shared/idempotency.ts";
import type { Idempotency, NamedRequest } from "../../shared/idempotency.ts";
import { secretsText } from "../../shared/key.ts";
import { readObject } from "../../shared/reach-object.ts";
import { mintRotated } from "./api-key.ts";
import type { MintedKey } from "./api-key.ts";
import type { StoredKey } from "./stored-key.ts";
import { LIVE_SECRETS_MAX } from "../../shared/key-uses.store.ts";
import { notifyPeers } from "./revocation.ts";
import type { KeyServices } from "./revocation.ts";
import { insertSecret, isActiveCaller, listSecrets, ROTATIONS_MAX } from "./secrets.store.ts";
import type { NewSecret, SecretRow } from "./secrets.store.ts";

const OVERLAP_MAX_S = 30 * 86_400;
/** Tries for a number that no other rotation takes meanwhile. */
const ROUNDS_MAX = 5;

/**
 * The body of a rotation: how long the secrets before it still live, 0 ends them at once; and whether all sessions made
 * before it end, used or not, those of consoles too.
 */
export const rotationSchema = z.object({
  overlap_seconds: z.int().check(z.minimum(0), z.maximum(OVERLAP_MAX_S)),
  end_sessions: z.optional(z.boolean()),
});

/** How long the other secrets live on, whether sessions do, and what tells the request from its repeat. */
export type RotationRequest = Pick<Rotating, "overlapMs" | "endsSessions" | "idempotency">;

/** What a request asks for; without an Idempotency-Key, without which a lost answer would lose the secret, it is 400. */
export async function parseRotation({
  header,
  body,
  named,
}: {
  readonly header: string | null;
  readonly body: unknown;
  readonly named: NamedRequest;
}): Promise<Result<RotationRequest>> {
  const name = readIdempotencyKey(header ?? undefined);
  if (!name.ok) return name;
  if (name.value === null) {
    return invalid("A rotation needs an Idempotency-Key.", "Idempotency-Key");
  }
  const fields = parseFields(rotationSchema, [], body);
  if (!fields.ok) return fields;
  const idempotency = await idempotencyOf(name.value, named);
  const { overlap_seconds: overlap, end_sessions: endsSessions = false } = fields.value;
  return success({ overlapMs: overlap * 1000, endsSessions, idempotency });
}

/** A rotation: of which key, who must still live for it (null: an operator), and what of before lives on. */
type Rotating = {
  readonly find: () => Promise<StoredKey | null>;
  readonly caller: NewSecret["caller"];
  readonly overlapMs: number;
  /** Whether all sessions that the key had before end with it. */
  readonly endsSessions: boolean;
  readonly idempotency: Idempotency;
};

/** The key with its new secret; the others end at `retiresAt` (Unix ms) at the latest. */
export type Rotation = {
  readonly booked: StoredKey;
  readonly key: string;
  readonly retiresAt: number;
};

/** A rotation as it is answered: the key's record and, this once, its new secret. */
export function rotationView(
  { key, retiresAt }: Rotation,
  record: object,
): Readonly<Record<string, unknown>> {
  return { ...record, key, others_end_at: timestamp(retiresAt) };
}

/**
 * Gives a key a new secret: in the book, then where it is known and admitted, then to the peers. What ends at
 * once is dead from the answer on. Every step runs on every call, so that a repeat completes what an earlier one
 * left half done. Refusals: `not_found`, `conflict`, `idempotency_mismatch`, `invalid_api_key` for who has died
 * meanwhile; our own faults. Throws when D1 fails.
 */
export async function rotateKeyEverywhere(
  services: KeyServices,
  rotating: Rotating,
): Promise<Result<Rotation>> {
  // 1. The book: which secrets there are, and when each ends.
  const made = await secretOfBook(services, rotating);
  if (!made.ok) return made;
  const booked = await rotating.find();
  if (booked === null) return noSuchKey();
  // 2. Where the key is known, then where it is admitted: what has ended is refused from here on.
  const { secret, key } = made.value;
  const told = await tellHome(services, booked, { ...rotating, number: secret.number });
  if (!told.ok) return told;
  const closed = await endConsoles(services, booked, rotating);
  if (!closed.ok) return closed;
  // 3. The peers, durable; until they hear of it they ask home for every request.
  const ended = (told.value.secrets ?? []).flatMap(({ hash, retiresAt }) =>
    retiresAt === null ? [] : [{ keyHash: hash, revokedAt: retiresAt, root: booked.keyHash }],
  );
  const noticed = await notifyPeers(services, booked.scope, ended);
  if (!noticed.ok) return noticed;
  return success({ booked: told.value, key, retiresAt: secret.created_at + rotating.overlapMs });
}

/** A repeat ends what came after the first call too: it asks for no more than a login. */
function endConsoles(
  { consoles }: KeyServices,
  { keyHash }: StoredKey,
  { endsSessions }: Rotating,
): Promise<Result<null>> {
  if (!endsSessions) return Promise.resolve(success(null));
  return readObject(() => consoles(consoleAccount(keyHash)).close(null));
}

function noSuchKey(): Result<never> {
  return refuse({
    kind: "not_found",
    message: "No such live key among those that you may rotate.",
  });
}

type MadeSecret = {
  readonly secret: Pick<SecretRow, "number" | "created_at">;
  readonly key: string;
};

/** The new secret as the book has it, made now or by the same call before. */
async function secretOfBook(
  services: KeyServices,
  { find, caller, overlapMs, endsSessions, idempotency }: Rotating,
): Promise<Result<MadeSecret>> {
  const { db, keySecrets, now } = services;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    /* oxlint-disable no-await-in-loop -- decided anew after a rotation that came in between */
    const booked = await find();
    if (booked === null || booked.revokedAt !== null) return noSuchKey();
    const secrets = await listSecrets(db, booked.keyId);
    const earlier = earlierOf(secrets, idempotency, now);
    if (earlier !== null) return again(services, booked, { earlier, idempotency });
    const why = whyNot(secrets, { now, retiresAt: now + overlapMs });
    if (why !== null) return why;
    const [signedBy] = keySecrets;
    if (signedBy === undefined) return refuse({ kind: "misconfigured" });
    const number = (secrets[0]?.number ?? 0) + 1;
    const { key, hash, prefix } = await minted(services, booked, { number, idempotency, signedBy });
    const secret = { of: booked, number, hash, prefix, signedBy: signedBy.id, idempotency, caller };
    const times = { now, retiresAt: now + overlapMs };
    const by = { actor: services.actor, endsSessions };
    const isMade = await insertSecret(db, { ...secret, ...times, ...by });
    if (isMade) return success({ secret: { number, created_at: now }, key });
    if (!(await isActiveCaller(db, caller, now))) return refuse({ kind: "invalid_api_key" });
    /* oxlint-enable no-await-in-loop */
  }
  return refuse({ kind: "overloaded" });
}

function earlierOf(
  secrets: readonly SecretRow[],
  { name }: Idempotency,
  now: number,
): SecretRow | null {
  const isKnown = (one: SecretRow): boolean =>
    one.name === name && now - one.created_at < IDEMPOTENCY_MS;
  return secrets.find(isKnown) ?? null;
}

/** The secret that the same call made before, derived again. */
async function again(
  services: KeyServices,
  booked: StoredKey,
  { earlier, idempotency }: { readonly earlier: SecretRow; readonly idempotency: Idempotency },
): Promise<Result<MadeSecret>> {
  if (earlier.body !== idempotency.body) return refuse({ kind: "idempotency_mismatch" });
  const signedBy = services.keySecrets.find(({ id }) => id === earlier.signed_by);
  if (signedBy === undefined) {
    return refuse({ kind: "idempotency_replay", made: "key", id: booked.keyId });
  }
  const { key } = await minted(services, booked, { number: earlier.number, idempotency, signedBy });
  return success({ secret: earlier, key });
}

function minted(
  { region: home }: KeyServices,
  { keyHash: root, scope }: StoredKey,
  of: {
    readonly number: number;
    readonly idempotency: Idempotency;
    readonly signedBy: KeySecret;
  },
): Promise<MintedKey> {
  const { number, idempotency, signedBy } = of;
  return mintRotated({ home, scope, root, number, name: idempotency.name, signedBy });
}

function whyNot(
  secrets: readonly SecretRow[],
  { now, retiresAt }: { readonly now: number; readonly retiresAt: number },
): Result<never> | null {
  const live = secrets.filter((one) => Math.min(one.retires_at ?? Infinity, retiresAt) > now);
  const young = secrets.filter((one) => now - one.created_at < IDEMPOTENCY_MS);
  if (live.length < LIVE_SECRETS_MAX && young.length <= ROTATIONS_MAX) return null;
  return refuse({
    kind: "conflict",
    message: `At most ${LIVE_SECRETS_MAX} secrets of a key at a time, and ${ROTATIONS_MAX} new ones a day.`,
    param: null,
    code: "too_many_secrets",
  });
}

function tellHome(
  { register, wallet, actor }: KeyServices,
  booked: StoredKey,
  { find, endsSessions, number }: Rotating & Pick<SecretRow, "number">,
): Promise<Result<StoredKey>> {
  const sessionsCut = endsSessions ? number : null;
  return syncWithDatabase(booked, {
    tell: async ({ keyId, keyHash, orgId, secrets }) => {
      await register(keyHash).setSecrets(secrets);
      return wallet(orgId).setKeySecrets(keyHash, secrets, { keyId, actor, sessionsCut });
    },
    reread: find,
    isSame: (one, other) => secretsText(one.secrets) === secretsText(other.secrets),
  });
}
