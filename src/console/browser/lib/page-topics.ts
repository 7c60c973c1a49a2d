type Topic = readonly [path: string, text: string, query?: Readonly<Record<string, string>>];

/** Other words by which people search for a page. */
const TOPICS: readonly Topic[] = [
  ["credits", "invoices, receipts and refunds"],
  ["credits", "balance, top-up and payments"],
  ["settings", "stop spending, pause requests"],
  ["settings", "budgets, policy, quotas and alerts"],
  ["keys", "create, rotate or revoke API keys, leaked keys"],
  ["keys", "sessions", { tab: "sessions" }],
  ["events", "webhooks", { tab: "Webhooks" }],
  ["activity", "cost and usage by model, key or end user"],
  ["team", "invite members, change roles, company login"],
  ["exports", "download costs as CSV"],
  ["profile", "delete your account, log out everywhere"],
  ["models", "prices and providers"],
  ["end-users", "blocked end users"],
  ["organizations", "suspend a customer"],
  ["payments", "refunds and invoices"],
  ["business", "margin"],
  ["business", "price lists", { tab: "Prices" }],
];

/** Returns a page's topics that contain a word starting with each word of `text`. */
export function findTopics(path: string, text: string): readonly Topic[] {
  const beginnings = text.toLowerCase().split(/\s+/).filter(Boolean);
  return TOPICS.filter(([page, topic]) => {
    const words = topic.toLowerCase().split(/\W+/);
    return page === path && beginnings.every((one) => words.some((word) => word.startsWith(one)));
  });
}
