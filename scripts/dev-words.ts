import type { Demo, DemoRegion } from "./dev-demo.ts";
import type { Showcase } from "./dev-showcase.ts";

export const HELP = `npm start

Runs both regions of the gateway on this machine, with an organisation to try in each.

  npm start -- --demo     also an organisation of 90 days in the EU, to look at in the console
  npm start -- --clean    forget the state (organisations, keys, balances) and start anew
  npm start -- --help     this text

Environment:
  EU_PORT, US_PORT        ports, default 8787 and 8788
  DEV_DIR                 folder of the state, default .dev, or one in it for each pair of ports
  OPENAI_API_KEY, ...     keys of real providers; MODELS, PROVIDERS, ALIASES add upstreams and models.
                          All of them may stand in .dev.vars instead.
`;

const consoleAt = (url: string, key: string): string =>
  `${new URL("/console/", url).href}#key=${key}`;

/** What to paste, region by region, and where things are. */
export function welcome(demo: Demo, directory: string, showcase: Showcase | null): string {
  const shown = showcase?.owner_key ?? demo.eu.regional_key;
  const whose = showcase === null ? "the EU's organisation" : "the organisation of 90 days";
  return [
    regionWords("EU", demo.eu),
    regionWords("US", demo.us),
    `Each organisation began with 10 dollars of credits. State: ${directory} (keys in demo.json; npm start -- --clean forgets it).`,
    "Operate them with: npm run -s admin -- --help",
    `Console of ${whose}, as its owner:\n  ${consoleAt(demo.eu.base_url, shown)}`,
    `Console of the EU, as an operator:\n  ${consoleAt(demo.eu.base_url, demo.admin_token)}`,
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
