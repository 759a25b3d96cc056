"""a13n Service: runs that wait for approvals and answers, and are resumed by a successor."""
