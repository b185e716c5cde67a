/** The replies of the relay of Brevo. The causes are documented. The texts are from public logs of the relay. */
import { CONFIGURATION_FAULT } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const TROUBLESHOOTING_URL = 'https://help.brevo.com/hc/en-us/articles/115000188150';

export const BREVO_REPLIES: readonly RelayReply[] = [
  {
    name: 'address of this service not authorized',
    codes: [525],
    phrases: ['unauthorized ip address'],
    verdict: CONFIGURATION_FAULT,
    samples: ['auth 525 5.7.1 Unauthorized IP address'],
    source: TROUBLESHOOTING_URL,
  },
  {
    name: 'account not activated',
    codes: [450, 502],
    phrases: ['smtp account is not yet activated'],
    verdict: CONFIGURATION_FAULT,
    samples: [
      'content 502 5.7.0 Your SMTP account is not yet activated. Please contact us at contact@brevo.com to request activation.',
      'content 450 Your SMTP account is not yet activated. Please contact us at contact@brevo.com to request activation.',
    ],
    source: TROUBLESHOOTING_URL,
  },
];
