/** `postrider openapi`: the OpenAPI document of the public interface, from the schemas that the listener obeys. */
import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Adds the command. */
export function addOpenApiCommand(program: Command, context: Context): void {
  const openapi = program.command('openapi').description('print the OpenAPI document of the public interface');
  // The document is JSON with or without it; every command takes the flag.
  openapi.option('--json', 'the same');
  openapi.action(async () => {
    const { openApiDocument } = await import('../http/openapi.ts');
    context.out(`${JSON.stringify(openApiDocument(), null, 2)}\n`);
  });
}
