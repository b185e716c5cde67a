/** Mailtrap Email Sending, https://mailtrap.io. */
import type { Provider } from '../provider.ts';
import { MAILTRAP_EVENTS } from './events.ts';
import { MAILTRAP_RELAY } from './profile.ts';

export const MAILTRAP: Provider = {
  name: 'mailtrap',
  title: 'Mailtrap',
  relay: MAILTRAP_RELAY,
  events: MAILTRAP_EVENTS,
};
