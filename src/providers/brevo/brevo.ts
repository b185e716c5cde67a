/** Brevo, https://www.brevo.com. */
import type { Provider } from '../provider.ts';
import { BREVO_EVENTS } from './events.ts';
import { BREVO_RELAY } from './profile.ts';

export const BREVO: Provider = {
  name: 'brevo',
  title: 'Brevo',
  relay: BREVO_RELAY,
  events: BREVO_EVENTS,
};
