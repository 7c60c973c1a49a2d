import { elapsedMs, timestamp } from "../../shared/clock.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import type { HmacKey } from "../../shared/hmac.ts";
import type { ProviderConfig, BuiltInProvider, DataLocation } from "../core/built-in.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { hexOf, sha256Hex } from "../../shared/hash.ts";
import { thinksByDefault } from "../claude/claude-rules.ts";
import { embedInBatches } from "../core/embedding-batches.ts";
import {
  createHttpProvider,
  sendPostRequest,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { textOf } from "../core/json-value.ts";
import { isProviderFailure } from "../core/provider.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import {
  chooseJsonToolName,
  bedrockIgnoresEffortNone,
  isWithinRegion,
} from "../protocols/converse/model-fields.ts";
import {
  parseBedrockFailure,
  parseBedrockException,
} from "../protocols/converse/bedrock-failure.ts";
import { readConverseResponse } from "../protocols/converse/converse-answer.ts";
import { toConverseRequest } from "../protocols/converse/converse-request.ts";
import {
  ConverseReader,
  createConverseStreamReader,
} from "../protocols/converse/converse-stream.ts";
import {
  getBedrockEmbeddingAuthor,
  readBedrockEmbeddings,
  toBedrockEmbeddingsRequest,
} from "../protocols/converse/embeddings.ts";
import type { ConfigProblem } from "../../shared/config/config.ts";
import { regionRowOf } from "../../shared/regions.ts";
import { findBaseUrlProblems, parseHostname, createHostRegionProblem } from "../core/built-in.ts";

type Credentials =
  | { readonly kind: "bearer"; readonly token: string }
  | {
      readonly kind: "signature";
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string;
    };

const BEARER_TOKEN = "AWS_BEARER_TOKEN_BEDROCK";
const ACCESS_KEY_ID = "AWS_ACCESS_KEY_ID";
const SECRET_ACCESS_KEY = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN = "AWS_SESSION_TOKEN";

/** Prefers an API key to an access key, as AWS's own tools do. */
function credentialsOf(config: ProviderConfig): Credentials | null {
  const token = config.secret(BEARER_TOKEN);
  if (token !== undefined) return { kind: "bearer", token };
  const accessKeyId = config.secret(ACCESS_KEY_ID);
  const secretAccessKey = config.secret(SECRET_ACCESS_KEY);
  if (accessKeyId === undefined || secretAccessKey === undefined) return null;
  const sessionToken = config.secret(SESSION_TOKEN);
  const base = { kind: "signature" as const, accessKeyId, secretAccessKey };
  return sessionToken === undefined ? base : { ...base, sessionToken };
}

function secretsOf(credentials: Credentials): readonly string[] {
  if (credentials.kind === "bearer") return [credentials.token];
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  return [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])];
}

type Authorize = (url: string, body: OutgoingBody) => Promise<Readonly<Record<string, string>>>;

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "bedrock";
const TERMINATOR = "aws4_request";

/**
 * Returns a function that authorizes POST requests without a query string. Access keys sign with
 * SigV4.
 */
function requestSigner(credentials: Credentials, region: string): Authorize {
  if (credentials.kind === "bearer") {
    const headers = { authorization: `Bearer ${credentials.token}` };
    return () => Promise.resolve(headers);
  }
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  let cachedKey: { readonly day: string; readonly key: Promise<HmacKey> } | null = null;
  const signingKeyOf = (day: string): Promise<HmacKey> => {
    if (cachedKey?.day !== day) cachedKey = { day, key: signingKey(secretAccessKey, day, region) };
    return cachedKey.key;
  };
  return async (url, body) => {
    const { host, pathname } = new URL(url);
    const date = timestamp(elapsedMs()).replaceAll(/[-:]|\.\d+/g, "");
    const day = date.slice(0, 8);
    const amzHeaders = {
      "x-amz-date": date,
      ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
    };
    const headers = Object.entries({ host, ...amzHeaders });
    const headerNames = headers.map(([name]) => name).join(";");
    const canonical = [
      "POST",
      encodePath(pathname),
      "", // The request has no query.
      ...headers.map(([name, value]) => `${name}:${value}`),
      "",
      headerNames,
      typeof body === "string" ? await sha256Hex(body) : await body.sha256(),
    ].join("\n");
    const scope = [day, region, SERVICE, TERMINATOR].join("/");
    const text = [ALGORITHM, date, scope, await sha256Hex(canonical)].join("\n");
    const signature = hexOf(await hmacSha256(await signingKeyOf(day), text));
    const credential = `Credential=${accessKeyId}/${scope}`;
    return {
      ...amzHeaders,
      authorization: `${ALGORITHM} ${credential}, SignedHeaders=${headerNames}, Signature=${signature}`,
    };
  };
}

/** Encodes a path a second time, as SigV4 requires for every service except S3. */
function encodePath(pathname: string): string {
  return pathname.split("/").map(encodeSegment).join("/");
}

function encodeSegment(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

async function signingKey(secret: string, day: string, region: string): Promise<HmacKey> {
  const dayKey = await signText(`AWS4${secret}`, day);
  const serviceKey = await signText(await signText(dayKey, region), SERVICE);
  return importHmacKey(await signText(serviceKey, TERMINATOR));
}

async function signText(secret: string | Uint8Array, text: string): Promise<Uint8Array> {
  return hmacSha256(await importHmacKey(secret), text);
}

const ID = "bedrock";
const OUTSIDE_REGION: ProviderFailure = { kind: "disabled", reason: "residency" };
const STREAM_TYPE = "application/vnd.amazon.eventstream";

type BedrockHost = {
  /**
   * The location in which AWS guarantees to run models. Models that can run elsewhere are disabled.
   */
  readonly tag: DataLocation;
  readonly awsRegion: string;
  readonly baseUrl: string;
  readonly credentials: Credentials;
};

export function createBedrockProvider(host: BedrockHost): Provider {
  const thinkingFields = {
    summarizesThoughts: true,
    thinksByDefault,
    ignoresNone: bedrockIgnoresEffortNone,
  };
  return { ...createHttpProvider(createProtocol(host)), ...thinkingFields };
}

function createProtocol({ tag, awsRegion, baseUrl, credentials }: BedrockHost): ProviderHandlers {
  const base = removeTrailingSlashes(baseUrl);
  const secrets = secretsOf(credentials);
  const authorize = requestSigner(credentials, awsRegion);
  const send = async (
    call: ProviderCall,
    operation: string,
    createBody: () => Promise<OutgoingBody | ProviderFailure> | string,
  ) => {
    if (!isWithinRegion(tag, call.upstreamId)) return OUTSIDE_REGION;
    const body = await createBody();
    if (isProviderFailure(body)) return body;
    const url = `${base}/model/${encodeURIComponent(call.upstreamId)}/${operation}`;
    const accept = call.stream ? STREAM_TYPE : "application/json";
    const headers = { accept, ...(await authorize(url, body)) };
    return sendPostRequest(call, { url, headers, body });
  };
  return {
    id: ID,
    streamType: STREAM_TYPE,
    chat: {
      send: (call) =>
        send(call, call.stream ? "converse-stream" : "converse", () => toConverseRequest(call)),
      convertResponse: (raw, call) => readConverseResponse(raw, chooseJsonToolName(call)),
    },
    embeddings: {
      sendInParts: (call, sendPart) =>
        embedInBatches(call, getBedrockEmbeddingAuthor(call.upstreamId).textsMax, sendPart),
      send: (call) => send(call, "invoke", () => toBedrockEmbeddingsRequest(call)),
      convertResponse: readBedrockEmbeddings,
    },
    failureInBody(raw) {
      const name = textOf(raw["__type"]);
      return name === "" ? null : parseBedrockException({ name, raw }, secrets);
    },
    failure: (status, headers, bodyText) => parseBedrockFailure(status, headers, bodyText, secrets),
    reader: (call) =>
      createConverseStreamReader(new ConverseReader(chooseJsonToolName(call), secrets)),
  };
}

const REGION_VARIABLE = "AWS_REGION";
const BASE_URL_VARIABLE = "BEDROCK_BASE_URL";

export const BEDROCK_PROVIDER: BuiltInProvider = {
  id: "bedrock",
  variables: [BEARER_TOKEN, ACCESS_KEY_ID, SECRET_ACCESS_KEY],
  isSet: (config) => credentialsOf(config) !== null && regionRowOf(config.region).aws !== null,
  tags: ({ region }) => [region],
  problems,
  build(config) {
    const awsRegion = awsRegionOf(config);
    const baseUrl = config.secret(BASE_URL_VARIABLE) ?? `https://${hostIn(awsRegion)}`;
    const credentials = credentialsOf(config) ?? { kind: "bearer", token: "" };
    return createBedrockProvider({ tag: config.region, awsRegion, baseUrl, credentials });
  },
};

function awsRegionOf(config: ProviderConfig): string {
  return config.secret(REGION_VARIABLE) ?? regionRowOf(config.region).aws?.usual ?? "";
}

function hostIn(awsRegion: string): string {
  return `bedrock-runtime.${awsRegion}.amazonaws.com`;
}

function isOutsideRegion(address: string, { region }: ProviderConfig): boolean {
  const host = parseHostname(address);
  if (!/(?:^|\.)(?:amazonaws\.com(?:\.cn)?|api\.aws|on\.aws)$/.test(host)) return false;
  const regionInHost = host.split(".").findLast((label) => /^[a-z]+(?:-[a-z]+)+-\d$/.test(label));
  return regionInHost === undefined || regionRowOf(region).aws?.pattern.test(regionInHost) !== true;
}

/**
 * Returns invalid variables, including an incomplete access key, which would silently turn off the
 * provider.
 */
function problems(config: ProviderConfig): ConfigProblem[] {
  const configProblems = findBaseUrlProblems(config, BASE_URL_VARIABLE);
  const { aws } = regionRowOf(config.region);
  if (aws === null) return configProblems;
  if (isOutsideRegion(config.secret(BASE_URL_VARIABLE) ?? "", config)) {
    configProblems.push(createHostRegionProblem(BASE_URL_VARIABLE, hostIn(aws.usual)));
  }
  const halves = [ACCESS_KEY_ID, SECRET_ACCESS_KEY];
  const missing = halves.filter((variable) => config.secret(variable) === undefined);
  if (missing.length === 1 && config.secret(BEARER_TOKEN) === undefined) {
    configProblems.push({
      variable: missing.join(),
      problem: "must be set: an access key is an id and a secret",
    });
  }
  if (credentialsOf(config) !== null && !aws.pattern.test(awsRegionOf(config))) {
    configProblems.push({ variable: REGION_VARIABLE, problem: `must be a region in ${aws.place}` });
  }
  return configProblems;
}
