import { euVars } from "./deploy-file.ts";

/** Returns variables with a provider. The next function adds a model. */
export const provider = (fields: string): string =>
  `PROVIDERS = '[{"id":"own","base_url":"https://own.test/v1",${fields}"regions":["eu"]}]'`;
export const model = (fields = ""): string =>
  `MODELS = '[{"id":"own/m","kind":"chat","context":8192,${fields}"price":{"input":1,"output":1},"routes":[{"provider":"own","upstream_id":"m"}]}]'`;

/** Faults with their change of the file, and the error that each must cause. */
export const FAULTS: readonly (readonly [
  string,
  readonly (readonly [string | RegExp, string])[],
  RegExp,
])[] = [
  [
    "an asset that can replace an API route",
    [['  "/v1/*",\n', ""]],
    /\[assets\] run_worker_first lacks \/v1\/\*/,
  ],
  [
    "a database_id of one digit",
    [["3f2a8c1e-5b7d-4e90-a1c4-6d8e0f2b4a71", "77777777-7777-7777-7777-777777777777"]],
    /database_id is a placeholder/,
  ],
  [
    "a database_id that isn't a UUID",
    [["3f2a8c1e-5b7d-4e90-a1c4-6d8e0f2b4a71", "the id"]],
    /database_id is a placeholder/,
  ],
  [
    "the other region's database",
    [["3f2a8c1e-5b7d-4e90-a1c4-6d8e0f2b4a71", "9c1d7e5b-2f4a-4b68-8e30-1a5c7d9f3b26"]],
    /database_id is also the database of us/,
  ],
  ["no database", [['binding = "DB"', 'binding = "BOOK"']], /no database with the binding DB/],
  [
    "an example among the routes",
    [['pattern = "eu.gateway.test"', 'pattern = "eu.example.com"']],
    /routes contain eu\.example\.com, which is an example/,
  ],
  [
    "no routes",
    [['routes = [{ pattern = "eu.gateway.test", custom_domain = true }]', "routes = []"]],
    /routes contain no address/,
  ],
  [
    "a route that isn't a custom domain",
    [
      [
        '{ pattern = "eu.gateway.test", custom_domain = true }',
        '{ pattern = "eu.gateway.test/*", zone_name = "gateway.test" }',
      ],
    ],
    /eu\.gateway\.test, which is not a custom domain/,
  ],
  ["the other region's REGION", [['REGION = "eu"', 'REGION = "us"']], /REGION is not eu/],
  ["no JURISDICTION", [['JURISDICTION = "eu", ', ""]], /JURISDICTION is not eu/],
  [
    "the other region's JURISDICTION",
    [['JURISDICTION = "eu"', 'JURISDICTION = "us"']],
    /JURISDICTION is not eu/,
  ],
  [
    "an example among PEERS",
    [["https://us.gateway.test", "https://us.turnpike.example.com"]],
    /PEERS contains us\.turnpike\.example\.com, which is an example/,
  ],
  [
    "a peer at an address that its routes lack",
    [["https://us.gateway.test", "https://usa.gateway.test"]],
    /has usa\.gateway\.test for us, but the routes of us don't contain it/,
  ],
  ["a peer over http", [["https://us.", "http://us."]], /PEERS must name https URLs/],
  [
    "a peer with a path",
    [["https://us.gateway.test", "https://us.gateway.test/v1"]],
    /PEERS must name origins/,
  ],
  ["PEERS that aren't JSON", [['\'[{"region":"us"', '\'[{region:"us"']], /PEERS is not valid JSON/],
  ["a future date", [["2026-11-02", "2026-11-22"]], /2026-11-22 is in the future/],
  ["no date", [[/^compatibility_date.*$/m, ""]], /compatibility_date is not a date/],
  ["a missing flag", [['"enable_request_signal", ', ""]], /lack enable_request_signal/],
  [
    "another missing flag",
    [[', "global_fetch_strictly_public"', ""]],
    /lack global_fetch_strictly_public/,
  ],
  [
    "a missing cron schedule",
    [['crons = ["0 * * * *", "*/3 * * * *", "* * * * *"]', 'crons = ["0 * * * *", "* * * * *"]']],
    /triggers lack the schedule \*\/3 \* \* \* \*/,
  ],
  [
    "an object that is not bound",
    [['name = "WALLET"', 'name = "PURSE"']],
    /do not bind Wallet as WALLET/,
  ],
  [
    "an object of another class",
    [['class_name = "RegionOutbox"', 'class_name = "Wallet"']],
    /do not bind RegionOutbox as REGION_OUTBOX/,
  ],
  [
    "a class that no migration creates",
    [['  "RegionOutbox",\n', ""]],
    /don't create RegionOutbox with SQLite/,
  ],
  [
    "a class that a migration deletes",
    [
      [
        "# Each env below",
        '[[migrations]]\ntag = "v2"\ndeleted_classes = ["Wallet"]\n# Each env below',
      ],
    ],
    /don't create Wallet with SQLite/,
  ],
  [
    "a number instead of a string",
    [euVars("MARKUP_PERCENT = 5")],
    /MARKUP_PERCENT is not a string/,
  ],
  [
    "a number out of range",
    [euVars('MARKUP_PERCENT = "-1"')],
    /MARKUP_PERCENT must be a whole number/,
  ],
  ["holds shorter than requests", [euVars('HOLD_TTL_S = "60"')], /HOLD_TTL_S must be longer/],
  ["an unknown residency", [euVars('RESIDENCY = "loose"')], /RESIDENCY must be one of/],
  [
    "a provider without regions",
    [euVars(`PROVIDERS = '[{"id":"a","base_url":"https://a.test"}]'`)],
    /PROVIDERS \[0\]\.regions/,
  ],
  [
    "a provider twice",
    [
      euVars(
        provider("")
          .replace("[{", "[{")
          .replace(/(\{.*\})/, "$1,$1"),
      ),
    ],
    /PROVIDERS names the provider "own" twice/,
  ],
  [
    "an unknown profile",
    [euVars(provider('"profile":"x",'))],
    /PROVIDERS "own" has an unknown profile/,
  ],
  ["a model without its provider", [euVars(model())], /MODELS "own\/m" has a route to "own"/],
  [
    "a model with a misspelt field",
    [euVars(model('"tokens":1,'))],
    /MODELS .*unknown field 'tokens'/,
  ],
  [
    "an alias of no model",
    [euVars(`ALIASES = '{"smart":"openai/gpt-0"}'`)],
    /ALIASES "smart" means "openai\/gpt-0", which is no model/,
  ],
  [
    "an alias of the wrong kind",
    [euVars(`ALIASES = '{"smart":"openai/text-embedding-3-small"}'`)],
    /ALIASES "smart" must mean a model for chat/,
  ],
  [
    "a secret among the vars",
    [euVars('PEER_IN_US_NEXT = "a-secret-of-more-than-32-characters"')],
    /PEER_IN_US_NEXT is a secret, but is in the vars/,
  ],
  [
    "a provider's key among the vars",
    [euVars('OPENAI_API_KEY = "t"')],
    /OPENAI_API_KEY is a secret/,
  ],
  [
    "a secret that isn't a name",
    [euVars(provider('"secret":"sk-1",'))],
    /PROVIDERS has "own" with a secret that isn't a name/,
  ],
];
