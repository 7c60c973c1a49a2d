/** The bench's floor: a plain pass-through, the minimum cost of a gateway on Workers. */
export default {
  fetch(request, env) {
    return fetch(env.UPSTREAM + new URL(request.url).pathname, request);
  },
} satisfies ExportedHandler<{ readonly UPSTREAM: string }>;
