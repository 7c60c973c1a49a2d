import type { Demo, DemoRegion } from "./dev-demo.ts";
import { portVariable } from "./dev-settings.ts";
import type { Showcase } from "./dev-showcase.ts";
import { FIRST_REGION, REGION_NAMES } from "./region-names.ts";

const FIRST = FIRST_REGION.toUpperCase();

export const HELP = `npm start

Runs the regions of the gateway on this machine, each with an organization to try.

  npm start -- --demo     also create an organization with 90 days of usage in the ${FIRST}, to see in the console
  npm start -- --clean    delete the state (organizations, keys, balances) and start again
  npm start -- --help     show this text

Environment:
  ${REGION_NAMES.map(portVariable).join(", ").padEnd(22)}  ports (default: 8787 and the following ones)
  DEV_DIR                 folder of the state (default: .dev, or a folder in it for other ports)
  OPENAI_API_KEY, ...     keys of real providers. MODELS, PROVIDERS and ALIASES add providers and models.
                          You can also set all of these in .dev.vars.
`;

const consoleAt = (url: string, key: string): string =>
  `${new URL("/console/", url).href}#key=${key}`;

/** Returns the message after the start: the addresses and, for each region, commands to paste. */
export function welcome(
  demo: Demo,
  {
    directory,
    showcase,
    account,
    payments,
  }: {
    readonly directory: string;
    readonly showcase: Showcase | null;
    /** The name of the signed-up account at the local identity provider. */
    readonly account: string | null;
    readonly payments: { readonly pages: string } | null;
  },
): string {
  const shown = showcase?.owner_key ?? demo[FIRST_REGION].regional_key;
  const whose = showcase === null ? `the ${FIRST}'s organization` : "the organization of 90 days";
  return [
    ...REGION_NAMES.map((region) => regionWords(region.toUpperCase(), demo[region])),
    `Each organization began with 10 dollars of credits. State: ${directory} (keys in demo.json; npm start -- --clean deletes it).`,
    "Operate them with: npm run -s admin -- --help",
    `Console of ${whose}, as its owner:\n  ${consoleAt(demo[FIRST_REGION].base_url, shown)}`,
    `Console of the ${FIRST}, as an operator:\n  ${consoleAt(demo[FIRST_REGION].base_url, demo.admin_token)}`,
    ...(account === null
      ? []
      : [
          `Or log in as a person: ${new URL("/console/", demo[FIRST_REGION].base_url).href} (Continue with this machine, as ${account}).`,
        ]),
    ...(payments === null
      ? []
      : [`Buy credits in the console. Refund or dispute them here: ${payments.pages}/`]),
    "Stop with Ctrl-C.",
    "",
  ].join("\n");
}

function regionWords(name: string, region: DemoRegion): string {
  const { base_url: url, regional_key: key } = region;
  const post = `curl -s ${url}/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json'`;
  return `
== ${name}  ${url}
   regional key ${key}
   global key   ${region.global_key}

# chat
${post} -i -d '{"model":"smart","messages":[{"role":"user","content":"Hello from ${name}"}]}'

# stream
${post} -N -d '{"model":"smart","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello from ${name}"}]}'

# balance
curl -s ${url}/balance -H 'Authorization: Bearer ${key}'

# OpenAI SDK for Node (paste into a shell in this folder)
node --input-type=module -e '
import OpenAI from "openai";
const client = new OpenAI({ baseURL: "${url}", apiKey: "${key}" });
const question = { model: "smart", messages: [{ role: "user", content: "Hello from the SDK" }] };
const answer = await client.chat.completions.create(question);
console.log(answer.choices[0].message.content, answer.usage);
const stream = await client.chat.completions.create({ ...question, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
console.log("\\n", await client.get("/balance"));
'
`;
}
