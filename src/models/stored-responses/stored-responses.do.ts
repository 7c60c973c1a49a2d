import { DurableObject } from "cloudflare:workers";
import { configOf, numberVar } from "../../shared/config/config.ts";
import { countJsonValues, JSON_VALUES_MAX } from "../../shared/http/json-text.ts";
import { BODY_BYTES_MAX } from "../../shared/http/read-json.ts";
import { HOUR_MS, now } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { creationTimeOfId } from "../../shared/id.ts";
import { logAlert, logWarning, errorMessageOf } from "../../shared/log.ts";
import { decryptBytes, encryptBytes } from "../../shared/encryption.ts";
import type { EncryptionSecret } from "../../shared/encryption.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import { createOrMigrateTables, migrateExistingTables } from "../../shared/tables.do.ts";
import { withTimeout } from "../../shared/timers.ts";
import { createDataKey, decryptDataKey, reencryptDataKey } from "./data-keys.ts";
import {
  STORED_RESPONSE_BYTES_MAX,
  CONVERSATION_TURNS_MAX,
  RESPONSE_ID_PREFIX,
  storedTextsOf,
} from "../../shared/contracts/stored-responses.ts";
import { decodeUtf8 } from "./items.ts";
import type {
  ResponseToStore,
  StoredResponsesMethods,
  ConversationTurn,
  StoredResponseQuery,
  StoredResponseResult,
  ResponseOwnerFilter,
} from "../../shared/contracts/stored-responses.ts";
import {
  STORED_RESPONSES_TABLES,
  deleteResponse,
  deleteUnusedKeys,
  deleteResponseContent,
  insertResponse,
  isResponseStorageDisabled,
  hasResponse,
  selectStoredResponseTotals,
  selectResponse,
  selectDataKeys,
  selectShortestLifetime,
  selectNextResponseExpiry,
  selectOldestResponses,
  selectExpiredResponses,
  selectEncryptedPart,
  storeDataKey,
  storeRetentionSetting,
} from "./rows.do.ts";
import type { StoredResponseTotals, StoredResponseRow, StoredResponsePart } from "./rows.do.ts";

/** Maximum ms to wait for a response to be stored. Must be less than the caller's timeout. */
const STORE_WAIT_MS_MAX = 1200;
/** Maximum ms from a request's deadline until its response is stored. */
const STORE_DELAY_MS_MAX = 60_000;
const EXPIRED_BATCH_MAX = 200;
/** Ms between checks of the data keys, because KEY_SECRETS can change. */
const KEY_CHECK_INTERVAL_MS = HOUR_MS;
const ANYONE: ResponseOwnerFilter = { memberId: null, keyId: null, sessionId: null };

type CurrentKey = { readonly number: number; readonly key: CryptoKey };
type StoredText = {
  readonly row: StoredResponseRow;
  readonly kind: StoredResponsePart;
  readonly name: string;
};

/**
 * An organization's stored responses, in its home region. Data keys encrypt the texts, and
 * KEY_SECRETS encrypt the data keys. An alarm deletes expired responses.
 */
export class KeptResponses extends DurableObject<Env> implements StoredResponsesMethods {
  readonly #waiters = new Set<{ readonly ids: Set<string>; readonly resolve: () => void }>();
  readonly #openedKeys = new Map<number, Promise<CryptoKey | null>>();
  #currentKeyPromise: Promise<CurrentKey> | null = null;
  #amounts: StoredResponseTotals | null = null;
  #alarmAtMs: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.#alarmAtMs = await ctx.storage.getAlarm();
    });
  }

  keepFor(hours: number): Promise<Result<null>> {
    return this.#catchStorageFailures(async () => {
      if (hours === 0 && !this.#hasTables()) return success(null);
      createOrMigrateTables(this.ctx.storage, STORED_RESPONSES_TABLES);
      const nowMs = now(this.env);
      const at = { nowMs, lateMs: nowMs - this.#storeDelayMs() };
      this.ctx.storage.transactionSync(() => storeRetentionSetting(this.#sql, hours, at));
      await this.#scheduleAlarm();
      return success(null);
    });
  }

  keep(answer: ResponseToStore): Promise<Result<null>> {
    return this.#catchStorageFailures(async () => {
      const { id, input, response } = answer;
      if (input.length + response.length > STORED_RESPONSE_BYTES_MAX) {
        return invalid("The response is too long to be stored.");
      }
      createOrMigrateTables(this.ctx.storage, STORED_RESPONSES_TABLES);
      const { number, key } = await this.#currentKey();
      const sealed = {
        input: await encryptBytes(input, key, encryptionLabel(id, "input")),
        response: await encryptBytes(response, key, encryptionLabel(id, "response")),
      };
      const expiresAt = this.#expiryOf(answer);
      if (expiresAt > now(this.env) && !hasResponse(this.#sql, id)) {
        this.#insert(answer, { expiresAt, dataKey: number, sealed });
        await this.#scheduleAlarm();
      }
      this.#notifyStored(id);
      return success(null);
    });
  }

  recall(
    request: StoredResponseQuery,
    seenBy: ResponseOwnerFilter,
  ): Promise<Result<StoredResponseResult>> {
    return this.#catchStorageFailures(async () => {
      const { previous, outputs, inputs } = request;
      if (!this.#hasTables()) return success({ links: null, outputs: {}, inputs: {} });
      await this.#waitUntilStored([
        ...(previous === null ? [] : [previous]),
        ...outputs,
        ...inputs,
      ]);
      const seen = { nowMs: now(this.env), seenBy };
      const rows = previous === null ? null : this.#linksTo(previous, seen);
      const [reported, given] = [this.#rowsOf(outputs, seen), this.#rowsOf(inputs, seen)];
      const isLong = rows !== null && rows.length > CONVERSATION_TURNS_MAX;
      const asTexts = [
        ...(rows ?? []).flatMap((row) => [
          storedTextOf(row, "input"),
          storedTextOf(row, "response"),
        ]),
        ...reported.map((row) => storedTextOf(row, "response")),
        ...given.map((row) => storedTextOf(row, "input")),
      ];
      const texts = isLong ? null : this.#readEncrypted(asTexts);
      if (texts === null) return refuse({ kind: "body_too_large", bytesMax: BODY_BYTES_MAX });
      const open = (row: StoredResponseRow, kind: StoredResponsePart): Promise<Uint8Array> =>
        this.#decrypt(storedTextOf(row, kind), texts);
      const linked = async (row: StoredResponseRow): Promise<ConversationTurn> => {
        const [input, response] = [await open(row, "input"), await open(row, "response")];
        return { id: row.id, input, response };
      };
      const named = async (found: readonly StoredResponseRow[], kind: StoredResponsePart) =>
        Object.fromEntries(
          await Promise.all(found.map(async (row) => [row.id, await open(row, kind)] as const)),
        );
      const recalled = {
        links: rows === null ? null : await Promise.all(rows.map(linked)),
        outputs: await named(reported, "response"),
        inputs: await named(given, "input"),
      };
      const values = storedTextsOf(recalled).reduce(
        (sum, text) => sum + countJsonValues(decodeUtf8(text)),
        0,
      );
      return values > JSON_VALUES_MAX
        ? invalid(`The conversation contains more than ${JSON_VALUES_MAX} JSON values.`)
        : success(recalled);
    });
  }

  forget(id: string, seenBy: ResponseOwnerFilter): Promise<Result<boolean>> {
    return this.#catchStorageFailures(async () => {
      if (!this.#hasTables()) return success(false);
      await this.#waitUntilStored([id]);
      const row = selectResponse(this.#sql, id, { nowMs: now(this.env), seenBy });
      if (row === null) return success(false);
      const untilMs = (creationTimeOfId(id, RESPONSE_ID_PREFIX) ?? 0) + this.#storeDelayMs();
      this.#transact(() => deleteResponseContent(this.#sql, id, untilMs));
      await this.#scheduleAlarm();
      return success(true);
    });
  }

  override async alarm(): Promise<void> {
    this.#alarmAtMs = null;
    if (!this.#hasTables()) return;
    try {
      const over = selectExpiredResponses(this.#sql, now(this.env), EXPIRED_BATCH_MAX);
      if (over.length > 0) {
        this.#transact(() => {
          for (const { id } of over) deleteResponse(this.#sql, id);
        });
      }
      await this.#reencryptKeys();
    } catch (error) {
      logWarning("kept_responses_not_swept", { reason: errorMessageOf(error) });
    }
    await this.#scheduleAlarm();
  }

  get #sql(): SqlStorage {
    return this.ctx.storage.sql;
  }

  #hasTables(): boolean {
    return migrateExistingTables(this.ctx.storage, STORED_RESPONSES_TABLES);
  }

  async #catchStorageFailures<T>(call: () => Promise<Result<T>>): Promise<Result<T>> {
    try {
      return await call();
    } catch (error) {
      logWarning("kept_responses_failed", { reason: errorMessageOf(error) });
      return refuse(toStorageFailure(error));
    }
  }

  #transact(change: () => void): void {
    this.#amounts = null;
    this.ctx.storage.transactionSync(change);
  }

  #insert(answer: ResponseToStore, stored: Parameters<typeof insertResponse>[2]): void {
    const { sealed } = stored;
    const amounts = { ...(this.#amounts ?? selectStoredResponseTotals(this.#sql)) };
    this.#transact(() => {
      amounts.answers += 1;
      amounts.bytes += sealed.input.length + sealed.response.length;
      this.#deleteOldest(amounts);
      insertResponse(this.#sql, answer, stored);
    });
    this.#amounts = amounts;
  }

  #deleteOldest(amounts: StoredResponseTotals): void {
    const answersMax = numberVar(this.env, "KEPT_ANSWERS_MAX");
    const bytesMax = numberVar(this.env, "KEPT_BYTES_MAX");
    while (amounts.answers > answersMax || amounts.bytes > bytesMax) {
      const [oldest] = selectOldestResponses(this.#sql, 1);
      if (oldest === undefined) return;
      deleteResponse(this.#sql, oldest.id);
      amounts.answers -= 1;
      amounts.bytes -= oldest.bytes;
    }
  }

  /** Returns the expiry (Unix ms) by the request's retention or a shorter one set later. */
  #expiryOf({ createdAt, hours }: ResponseToStore): number {
    const fewest = selectShortestLifetime(this.#sql, createdAt) ?? hours;
    return createdAt + Math.min(hours, fewest) * HOUR_MS;
  }

  /**
   * Returns the conversation up to a response, oldest first, or null if a turn was deleted. A
   * caller who can read the last turn can read all turns.
   */
  #linksTo(
    id: string,
    seen: Parameters<typeof selectResponse>[2],
  ): readonly StoredResponseRow[] | null {
    const links: StoredResponseRow[] = [];
    for (let at: string | null = id; at !== null;) {
      const who: typeof seen = links.length === 0 ? seen : { ...seen, seenBy: ANYONE };
      const row: StoredResponseRow | null = selectResponse(this.#sql, at, who);
      if (row === null) return null;
      links.push(row);
      at = row.previous;
    }
    return links.toReversed();
  }

  #rowsOf(
    ids: readonly string[],
    seen: Parameters<typeof selectResponse>[2],
  ): readonly StoredResponseRow[] {
    return ids.flatMap((id) => selectResponse(this.#sql, id, seen) ?? []);
  }

  /**
   * Reads all encrypted texts before any await. Returns null if they exceed a body's size limit.
   */
  #readEncrypted(requested: readonly StoredText[]): ReadonlyMap<string, Uint8Array> | null {
    const texts = new Map<string, Uint8Array>();
    let bytes = 0;
    for (const { row, kind, name } of requested) {
      if (texts.has(name)) continue;
      const sealed = selectEncryptedPart(this.#sql, row.id, kind);
      bytes += sealed.length;
      if (bytes > BODY_BYTES_MAX) return null;
      texts.set(name, sealed);
    }
    return texts;
  }

  async #decrypt(
    { row, name }: StoredText,
    texts: ReadonlyMap<string, Uint8Array>,
  ): Promise<Uint8Array> {
    const key = await this.#keyOf(row.dataKey);
    const sealed = texts.get(name);
    const text =
      key === null || sealed === undefined ? null : await decryptBytes(sealed, key, name);
    if (text !== null) return text;
    logAlert("kept_response_unreadable", { object: this.ctx.id.toString() });
    throw new Error("a kept answer does not open under KEY_SECRETS");
  }

  #keyOf(number: number): Promise<CryptoKey | null> {
    const known = this.#openedKeys.get(number);
    if (known !== undefined) return known;
    const sealed = selectDataKeys(this.#sql).find((one) => one.number === number)?.sealed ?? "";
    const opening = decryptDataKey(sealed, this.ctx.id.toString(), this.#secrets());
    this.#openedKeys.set(number, opening);
    void opening
      .then((key) => key === null && this.#openedKeys.delete(number))
      .catch(() => undefined);
    return opening;
  }

  #currentKey(): Promise<CurrentKey> {
    this.#currentKeyPromise ??= this.#findOrCreateKey().catch((error: unknown) => {
      this.#currentKeyPromise = null;
      throw error;
    });
    return this.#currentKeyPromise;
  }

  async #findOrCreateKey(): Promise<CurrentKey> {
    const newest = selectDataKeys(this.#sql).at(-1);
    const known = newest === undefined ? null : await this.#keyOf(newest.number);
    if (newest !== undefined && known !== null) return { number: newest.number, key: known };
    const [first] = this.#secrets();
    if (first === undefined) throw new Error("KEY_SECRETS are not set");
    const { key, sealed } = await createDataKey(this.ctx.id.toString(), first);
    const number = (newest?.number ?? 0) + 1;
    storeDataKey(this.#sql, number, sealed);
    this.#openedKeys.set(number, Promise.resolve(key));
    return { number, key };
  }

  #secrets(): readonly EncryptionSecret[] {
    const parsed = configOf(this.env);
    return parsed.ok ? parsed.config.keySecrets : [];
  }

  async #reencryptKeys(): Promise<void> {
    deleteUnusedKeys(this.#sql);
    this.#currentKeyPromise = null;
    const owner = this.ctx.id.toString();
    for (const { number, sealed } of selectDataKeys(this.#sql)) {
      const reencrypted = await reencryptDataKey(sealed, owner, this.#secrets());
      if (reencrypted === null) logAlert("kept_response_unreadable", { object: owner });
      else if (reencrypted !== sealed) storeDataKey(this.#sql, number, reencrypted);
    }
  }

  async #waitUntilStored(ids: readonly string[]): Promise<void> {
    if (isResponseStorageDisabled(this.#sql)) return;
    const earliest = now(this.env) - this.#storeDelayMs();
    const late = ids.filter(
      (id) =>
        (creationTimeOfId(id, RESPONSE_ID_PREFIX) ?? 0) > earliest && !hasResponse(this.#sql, id),
    );
    if (late.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = { ids: new Set(late), resolve };
    this.#waiters.add(waiting);
    await withTimeout(promise, STORE_WAIT_MS_MAX).catch(() => undefined);
    this.#waiters.delete(waiting);
  }

  #notifyStored(id: string): void {
    for (const { ids, resolve } of this.#waiters) {
      if (ids.delete(id) && ids.size === 0) resolve();
    }
  }

  #storeDelayMs(): number {
    return numberVar(this.env, "REQUEST_DEADLINE_S") * 1000 + STORE_DELAY_MS_MAX;
  }

  async #scheduleAlarm(): Promise<void> {
    const end = selectNextResponseExpiry(this.#sql);
    if (end === null) return;
    const at = now({}) + Math.min(KEY_CHECK_INTERVAL_MS, Math.max(0, end - now(this.env)));
    if (this.#alarmAtMs !== null && this.#alarmAtMs <= at) return;
    this.#alarmAtMs = at;
    await this.ctx.storage.setAlarm(at);
  }
}

/** Returns the label that binds an encrypted text to its row, so that the text can't be moved. */
function encryptionLabel(id: string, kind: StoredResponsePart): string {
  return `${id}/${kind}`;
}

function storedTextOf(row: StoredResponseRow, kind: StoredResponsePart): StoredText {
  return { row, kind, name: encryptionLabel(row.id, kind) };
}
