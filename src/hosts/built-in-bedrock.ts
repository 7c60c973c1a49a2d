import type { ConfigProblem } from "../config.ts";
import { rowOf } from "../lib/regions.ts";
import { baseUrlProblems, hostOf, otherPlace } from "../core/built-in.ts";
import type { BuiltIn, ProviderConfig } from "../core/built-in.ts";
import { bedrock } from "./bedrock.ts";
import {
  ACCESS_KEY_ID,
  BEARER_TOKEN,
  credentialsOf,
  SECRET_ACCESS_KEY,
} from "./bedrock-credentials.ts";

const REGION = "AWS_REGION";
const BASE_URL = "BEDROCK_BASE_URL";

/** Bedrock in this region, with an API key of its own or with an access key. */
export const BEDROCK: BuiltIn = {
  id: "bedrock",
  variables: [BEARER_TOKEN, ACCESS_KEY_ID, SECRET_ACCESS_KEY],
  isSet: (config) => credentialsOf(config) !== null && rowOf(config.region).aws !== null,
  tags: ({ region }) => [region],
  problems,
  build(config) {
    const awsRegion = awsRegionOf(config);
    const baseUrl = config.secret(BASE_URL) ?? `https://${hostIn(awsRegion)}`;
    const credentials = credentialsOf(config) ?? { kind: "bearer", token: "" }; // only built where they are set
    return bedrock({ tag: config.region, awsRegion, baseUrl, credentials });
  },
};

function awsRegionOf(config: ProviderConfig): string {
  return config.secret(REGION) ?? rowOf(config.region).aws?.usual ?? "";
}

function hostIn(awsRegion: string): string {
  return `bedrock-runtime.${awsRegion}.amazonaws.com`;
}

/** Whether an address is one of AWS's, which name their region, in another region than this. */
function isElsewhere(address: string, { region }: ProviderConfig): boolean {
  const host = hostOf(address);
  if (!/(?:^|\.)(?:amazonaws\.com(?:\.cn)?|api\.aws|on\.aws)$/.test(host)) return false;
  const named = host.split(".").findLast((label) => /^[a-z]+(?:-[a-z]+)+-\d$/.test(label));
  return named === undefined || rowOf(region).aws?.pattern.test(named) !== true;
}

/** Another region would break the promise of the host; half of an access key would leave it out unsaid. */
function problems(config: ProviderConfig): ConfigProblem[] {
  const found = baseUrlProblems(config, BASE_URL);
  const { aws } = rowOf(config.region);
  if (aws === null) return found; // nothing of it is asked here
  if (isElsewhere(config.secret(BASE_URL) ?? "", config)) {
    found.push(otherPlace(BASE_URL, hostIn(aws.usual)));
  }
  const halves = [ACCESS_KEY_ID, SECRET_ACCESS_KEY];
  const missing = halves.filter((variable) => config.secret(variable) === undefined);
  if (missing.length === 1 && config.secret(BEARER_TOKEN) === undefined) {
    found.push({
      variable: missing.join(),
      problem: "must be set: an access key is an id and a secret",
    });
  }
  if (credentialsOf(config) !== null && !aws.pattern.test(awsRegionOf(config))) {
    found.push({ variable: REGION, problem: `must be a region in ${aws.place}` });
  }
  return found;
}
