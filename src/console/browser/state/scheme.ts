import { createCell } from "./cell.ts";

const STORAGE_KEY = "scheme";
const SCHEMES = ["system", "light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];

export const colorScheme = createCell<Scheme>(
  SCHEMES.find((name) => name === localStorage.getItem(STORAGE_KEY)) ?? "system",
);

export function applyColorScheme(): void {
  const chosen = colorScheme.get();
  document.documentElement.dataset["scheme"] = chosen;
  if (chosen === "system") localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, chosen);
}

export function switchColorScheme(): void {
  const at = SCHEMES.indexOf(colorScheme.get());
  colorScheme.set(SCHEMES[(at + 1) % SCHEMES.length] ?? "system");
}

colorScheme.watch(applyColorScheme);
