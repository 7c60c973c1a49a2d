/** The floor of the bench: the least a gateway on Workers can do, a bare pass-through. */
export default {
  fetch(request, env) {
    return fetch(env.UPSTREAM + new URL(request.url).pathname, request);
  },
} satisfies ExportedHandler<{ readonly UPSTREAM: string }>;
