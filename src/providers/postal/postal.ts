/** Postal, https://docs.postalserver.io, a mail delivery platform that an operator runs. */
import type { Provider } from '../provider.ts';
import { POSTAL_EVENTS } from './events.ts';
import { POSTAL_RELAY } from './profile.ts';

export const POSTAL: Provider = {
  name: 'postal',
  title: 'Postal',
  relay: POSTAL_RELAY,
  events: POSTAL_EVENTS,
};
