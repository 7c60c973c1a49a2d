import type { Context } from "hono";
import type { AppEnv } from "../../shared/http/context.ts";
import { joinBytes } from "../../shared/http/bounded-body.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { logAlert, errorMessageOf } from "../../shared/log.ts";
import type { Provider } from "../core/provider.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { EmbeddingsBody } from "../core/embeddings.ts";
import type { PaidRequest } from "./paid-request.ts";

const TOKEN_TABLE_URL = "https://assets.invalid/tokens/cl100k_base.bin";

class CachedTokenTable {
  #reading: Promise<TokenTable> | null = null;

  read(assets: Fetcher): Promise<TokenTable> {
    this.#reading ??= loadTable(assets).catch((error: unknown) => {
      this.#reading = null; // The next request tries again.
      throw error;
    });
    return this.#reading;
  }
}

const makeTokenTableCache = (): CachedTokenTable => new CachedTokenTable();

async function loadTable(assets: Fetcher): Promise<TokenTable> {
  const response = await assets.fetch(TOKEN_TABLE_URL);
  if (!response.ok) throw new Error(`the token table is ${response.status}`);
  return new TokenTable(new Uint8Array(await response.arrayBuffer()));
}

/**
 * Converts the token IDs of an embeddings request to texts if a route accepts no IDs. Returns null
 * if no conversion is needed. Returns 503 if the token table can't be read.
 */
export async function decodeTokenInput(
  c: Context<AppEnv>,
  parsed: ParsedRequest,
  {
    routes,
    providers,
  }: Pick<PaidRequest, "routes"> & { readonly providers: ReadonlyMap<string, Provider> },
): Promise<Result<ParsedRequest> | null> {
  const { request } = parsed;
  if (request.kind !== "embeddings" || !hasTokenInput(request.body.input)) return null;
  const { ASSETS: assets } = c.env as { readonly ASSETS?: Fetcher };
  const takesTokens = routes.every(({ provider }) => providers.get(provider)?.takesTokens === true);
  if (takesTokens) return null;
  if (assets === undefined) {
    return invalid(
      "This model only supports text. Send 'input' as a string or a list of strings.",
      "input",
    );
  }
  let table: TokenTable;
  try {
    table = await Isolate.of(c.get("config")).get(makeTokenTableCache).read(assets);
  } catch (error) {
    logAlert("token_table_unreadable", { reason: errorMessageOf(error) });
    return refuse({ kind: "storage_unavailable" });
  }
  const input = decodeTokens(request.body.input, table);
  if (!input.ok) return input;
  return success({
    ...parsed,
    request: { kind: "embeddings", body: { ...request.body, input: input.value } },
  });
}

/** Maximum bytes of all texts: 28 for each of the 300,000 tokens that OpenAI allows. */
const TEXT_BYTES_MAX = 8 * 1024 * 1024;

/** The text of each token of cl100k_base. The file has one length byte before each text. */
class TokenTable {
  readonly #bytes: Uint8Array;
  readonly #starts: readonly number[] | Uint32Array;

  constructor(bytes: Uint8Array) {
    const starts: number[] = [];
    for (let at = 0; at < bytes.length; at += 1 + (bytes[at] ?? 0)) starts.push(at);
    this.#bytes = bytes;
    this.#starts = Uint32Array.from(starts);
  }

  get size(): number {
    return this.#starts.length;
  }

  bytesOf(id: number): Uint8Array {
    const start = this.#starts[id];
    if (start === undefined) return new Uint8Array();
    return this.#bytes.subarray(start + 1, start + 1 + (this.#bytes[start] ?? 0));
  }
}

function hasTokenInput(input: EmbeddingsBody["input"]): input is number[] | number[][] {
  return typeof input !== "string" && typeof input[0] !== "string";
}

function decodeTokens(input: number[] | number[][], table: TokenTable): Result<string | string[]> {
  const isSingle = typeof input[0] === "number";
  const lists = (isSingle ? [input] : input) as number[][];
  let bytesLeft = TEXT_BYTES_MAX;
  const texts: string[] = [];
  for (const [index, ids] of lists.entries()) {
    const path = isSingle ? "input" : `input[${index}]`;
    const unknownAt = ids.findIndex((id) => id >= table.size);
    if (unknownAt !== -1) {
      return invalid(
        `${path}[${unknownAt}] must be a token ID of cl100k_base.`,
        `${path}[${unknownAt}]`,
      );
    }
    const pieces = ids.map((id) => table.bytesOf(id));
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    bytesLeft -= bytes;
    if (bytesLeft < 0) {
      return invalid(
        "The texts in 'input' are too long in total. Send fewer texts per request.",
        "input",
      );
    }
    texts.push(decodePieces(pieces, bytes));
  }
  return success(isSingle ? (texts[0] ?? "") : texts);
}

function decodePieces(pieces: readonly Uint8Array[], size: number): string {
  const joined = joinBytes(pieces, size);
  return new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(joined);
}
