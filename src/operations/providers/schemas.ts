/**
 * The schema of the list of providers in commands and the API. The file imports no module of Node, because the
 * dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

const ProviderEvents = Type.Object({
  isSetUp: Type.Boolean({ description: 'True if the settings contain a secret, topic or queue for the events.' }),
  url: createNullable(
    Type.String({ description: 'The URL to register at the provider; null if POSTRIDER_FEEDBACK_URL is not set.' }),
  ),
  setting: Type.String({ description: 'The settings that are required to receive the events.' }),
  lastEventAt: createNullable(Time),
  refused: Type.Array(
    Type.Object({
      reason: Type.String({ description: 'The reason for the refusal, such as `signature`.' }),
      count: Type.Integer({ description: 'The number of requests that all live nodes refused since their start.' }),
      lastAt: Time,
    }),
  ),
  result: createStringEnum(['ok', 'warning', 'failure'], { description: 'The finding of `doctor` about the events.' }),
  detail: Type.String({ description: 'The finding in one line.' }),
  remedy: createNullable(Type.String({ description: 'The remedy, or null.' })),
});

export const ProviderEntry = Type.Object({
  name: Type.String({ description: 'The name of the provider, such as `postmark`.' }),
  title: Type.String({ description: 'The display name.' }),
  isRelay: Type.Boolean({ description: 'True if the transport sends to the relay of this provider.' }),
  events: createNullable(ProviderEvents),
  guide: Type.String({ description: 'The page of the manual with the setup steps.' }),
});
export type ProviderEntry = Static<typeof ProviderEntry>;

export const ProviderList = Type.Object({
  transport: Type.Object({
    kind: createStringEnum(['capture', 'ses', 'smtp']),
    host: createNullable(
      Type.String({ description: 'The relay with its port, or the region of Amazon SES; null for `capture:`.' }),
    ),
    provider: createNullable(
      Type.String({ description: 'The title of the provider whose profile is in use, or null.' }),
    ),
  }),
  feedbackUrl: createNullable(Type.String({ description: 'POSTRIDER_FEEDBACK_URL, or null.' })),
  providers: Type.Array(ProviderEntry, {
    description: 'The supported providers. `events` is null for a provider that is not in use.',
  }),
});
export type ProviderList = Static<typeof ProviderList>;
