const PATHS = {
  overview: "M2 9h5V2H2zM9 14h5V7H9zM2 14h5v-3H2zM9 5h5V2H9z",
  activity: "M2 14V8M6 14V3M10 14V6M14 14V10",
  requests: "M3 4h10M3 8h10M3 12h6",
  keys: "M10 2a4 4 0 1 1-2.6 7L3 13.5H1.5V12l5.5-5.5A4 4 0 0 1 10 2zM11 5h.01",
  credits: "M1.5 4h13v9h-13zM1.5 7h13M4 10.5h3",
  users:
    "M6 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM1 14c0-3 2-4.5 5-4.5s5 1.5 5 4.5M11 2.5a3 3 0 0 1 0 5M13 10c1.5.700 2 2 2 4",
  events: "M8 1.5v1M4 12V7a4 4 0 0 1 8 0v5l1 1H3zM7 14.5h2",
  playground: "M4 2l9 6-9 6z",
  connect: "M6 4L2 8l4 4M10 4l4 4-4 4",
  exports: "M8 2v8M5 7l3 3 3-3M2 11v3h12v-3",
  settings: "M2 4h7M13 4h1M2 12h1M7 12h7M11 2v4M5 10v4",
  models: "M8 1.5l6 3.5v6L8 14.5 2 11V5zM2 5l6 3.5L14 5M8 8.5v6",
  team: "M5.5 7a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM10.5 7a2.5 2.5 0 1 0 0-5M1 14c0-3 2-4.5 4.5-4.5S10 11 10 14zM11.5 9.5c2 .3 3.5 2 3.5 4.5h-2.5",
  profile: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 14c0-3 2.5-4.5 6-4.5s6 1.5 6 4.5z",
  health: "M1 8h3l2-5 4 10 2-5h3",
  catalog: "M2 3h12v3H2zM2 10h12v3H2zM5 4.5h.010M5 11.5h.010",
  business:
    "M8 1v14M11.5 4.5C11 3 9.5 2.8 8 2.8c-2 0-3.5.900-3.5 2.6C4.5 9.5 12 7 12 10.7c0 1.7-1.7 2.5-4 2.5-2 0-3.7-.7-4-2.4",
  operator: "M2 14V6l6-4 6 4v8M6 14v-4h4v4",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
